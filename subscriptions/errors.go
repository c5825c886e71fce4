package subscriptions

import "commerce/auth/locale"

// The codes an Error can carry.
const (
	codeInvalidParameter = "invalid_parameter"
	codeNotFound         = "subscription_not_found"
	codeUnavailable      = "unavailable"
)

// Error is why a call was not answered.
type Error struct {
	code     string
	text     locale.Text
	faults   []fault
	cause    error // nil unless something behind us failed
	language locale.Locale
}

// fault is one query parameter that cannot be accepted, and why.
type fault struct {
	parameter string
	text      locale.Text
}

func refuse(faults ...fault) *Error {
	return &Error{code: codeInvalidParameter, text: faults[0].text, faults: faults}
}

func notFound() *Error { return &Error{code: codeNotFound, text: textNotFound} }

func unavailable(cause error) *Error {
	return &Error{code: codeUnavailable, text: textUnavailable, cause: cause}
}

// tooManyDeep refuses a deep page at once, so that it takes no connection.
func tooManyDeep() *Error {
	return &Error{code: codeUnavailable, text: textDeep}
}

// Error returns the code, the English sentence and the cause, for a log. It holds
// no value of a parameter, since those are customers' addresses and numbers.
func (e *Error) Error() string {
	s := e.code + ": " + e.text.In(locale.En)
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns what failed behind us, nil where the caller is at fault.
func (e *Error) Unwrap() error { return e.cause }

// Code returns the stable word: invalid_parameter, subscription_not_found or
// unavailable.
func (e *Error) Code() string { return e.code }

// Message returns a sentence that the caller's developer can act on.
func (e *Error) Message(l locale.Locale) string { return e.text.In(l) }

// Faults returns what is wrong with each query parameter at fault, nil where none
// is.
func (e *Error) Faults(l locale.Locale) map[string][]string {
	if len(e.faults) == 0 {
		return nil
	}
	byParameter := make(map[string][]string, len(e.faults))
	for _, f := range e.faults {
		byParameter[f.parameter] = append(byParameter[f.parameter], f.text.In(l))
	}
	return byParameter
}

// Language returns the language the caller is answered in, "" where it is not
// known.
func (e *Error) Language() locale.Locale { return e.language }

var (
	textNotFound = locale.Text{
		locale.En: "This store has no such subscription.",
		locale.Ar: "لا يوجد اشتراك بهذا الرقم في هذا المتجر.",
	}
	textUnavailable = locale.Text{
		locale.En: "Subscriptions cannot be read right now. Repeat the request in a moment.",
		locale.Ar: "تتعذر قراءة الاشتراكات حاليًا. أعد إرسال الطلب بعد لحظات.",
	}
	textDeep = locale.Text{
		locale.En: "Other pages far down a list are being read by number right now. Follow next_page_url, which is as quick as page 1, or repeat the request in a moment.",
		locale.Ar: "تُقرأ حاليًا صفحات أخرى بعيدة بأرقامها. اتبع next_page_url فهو بسرعة الصفحة الأولى، أو أعد إرسال الطلب بعد لحظات.",
	}
	textUnreadable = locale.Text{
		locale.En: "The query cannot be read. Percent-encode the parameters' values.",
		locale.Ar: "تتعذر قراءة معاملات الطلب. رمّز قيمها بصيغة percent-encoding.",
	}
	textUnknown = locale.Text{
		locale.En: "There is no such parameter. The list takes page, per_page, customerEmail, customerPhone and customerCountryCode.",
		locale.Ar: "لا يوجد معامل بهذا الاسم. تقبل القائمة page و per_page و customerEmail و customerPhone و customerCountryCode.",
	}
	textRepeated = locale.Text{
		locale.En: "The parameter may come only once.",
		locale.Ar: "يجب ألا يتكرر هذا المعامل.",
	}
	textEmpty = locale.Text{
		locale.En: "The parameter has no value. Leave it out to list everything.",
		locale.Ar: "لا قيمة لهذا المعامل. احذفه لعرض كل الاشتراكات.",
	}
	textPage = locale.Text{
		locale.En: "page must be a whole number from 1 to 1000000.",
		locale.Ar: "يجب أن يكون page عددًا صحيحًا من 1 إلى 1000000.",
	}
	textTooFar = locale.Text{
		locale.En: "This page skips more than 1000000 subscriptions. Follow next_page_url from an earlier page instead, or use a filter.",
		locale.Ar: "تتخطى هذه الصفحة أكثر من 1000000 اشتراك. اتبع next_page_url من صفحة سابقة، أو استخدم أحد عوامل التصفية.",
	}
	textPerPage = locale.Text{
		locale.En: "per_page must be a whole number from 1 to 100.",
		locale.Ar: "يجب أن يكون per_page عددًا صحيحًا من 1 إلى 100.",
	}
	textEmail = locale.Text{
		locale.En: "customerEmail must be an e-mail address of at most 254 characters.",
		locale.Ar: "يجب أن يكون customerEmail عنوان بريد إلكتروني لا يتجاوز 254 محرفًا.",
	}
	textPhone = locale.Text{
		locale.En: "customerPhone must be a telephone number of 1 to 20 digits.",
		locale.Ar: "يجب أن يكون customerPhone رقم هاتف من 1 إلى 20 خانة.",
	}
	textCallingCode = locale.Text{
		locale.En: "customerCountryCode must be 1 to 4 digits, such as 966.",
		locale.Ar: "يجب أن يكون customerCountryCode من 1 إلى 4 أرقام، مثل 966.",
	}
	textLink = locale.Text{
		locale.En: "cursor is not one of this list's. Follow next_page_url and prev_page_url unchanged, or use page alone.",
		locale.Ar: "قيمة cursor لا تخص هذه القائمة. اتبع next_page_url و prev_page_url دون تغيير، أو استخدم page وحده.",
	}
)
