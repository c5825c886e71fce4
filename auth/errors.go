package auth

import "commerce/auth/locale"

// The codes an Error can carry.
const (
	codeInvalidParameter = "invalid_parameter"
	codeStoreRequired    = "store_required"
	codeStoreUnknown     = "store_unknown"
	codeUnauthenticated  = "unauthenticated"
	codeUnavailable      = "unavailable"
)

// Error is why a caller is not let in. It never holds a token or a part of one.
type Error struct {
	code   string
	member string
	text   locale.Text
	cause  error // nil unless something behind us failed
}

// Error returns the code, the English sentence and the cause, for a log.
func (e *Error) Error() string {
	s := e.code + ": " + e.text.In(locale.En)
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Code returns the stable word for the refusal: store_required, store_unknown,
// unauthenticated, unavailable or invalid_parameter.
func (e *Error) Code() string { return e.code }

// Message returns a sentence that the caller's developer can act on.
func (e *Error) Message(l locale.Locale) string { return e.text.In(l) }

// Member returns the name of the header at fault, "" where none is.
func (e *Error) Member() string { return e.member }

// Unwrap returns what failed behind us, nil where the caller is at fault.
func (e *Error) Unwrap() error { return e.cause }

func refusal(code, member, en, ar string) *Error {
	return &Error{code: code, member: member, text: locale.Text{locale.En: en, locale.Ar: ar}}
}

func unavailable(cause error) *Error {
	return &Error{code: codeUnavailable, text: textUnavailable, cause: cause}
}

var textUnavailable = locale.Text{
	locale.En: "The caller cannot be identified right now. Repeat the request unchanged in a moment.",
	locale.Ar: "يتعذر التحقق من هوية صاحب الطلب حاليًا. أعد إرسال الطلب نفسه بعد لحظات.",
}

// Refusals that concern the store.
var (
	errStoreRequired = refusal(codeStoreRequired, "X-Public-Key",
		"The request names no store. Send the store's publishable key in the header X-Public-Key.",
		"لا يحدد الطلب أي متجر. أرسل المفتاح العام للمتجر في الترويسة X-Public-Key.")
	errStoreUnknown = refusal(codeStoreUnknown, "X-Public-Key",
		"No store has this X-Public-Key. Check the key in the store's settings.",
		"لا يوجد متجر بهذا المفتاح في X-Public-Key. تحقق من المفتاح في إعدادات المتجر.")
	errTokenStoreUnknown = refusal(codeStoreUnknown, "Authorization",
		"The store_id of the access token is no store's. Check the service that issued the token.",
		"قيمة store_id في رمز الوصول لا تخص أي متجر. تحقق من الخدمة التي أصدرت الرمز.")
	errPublicKeyRepeated = refusal(codeInvalidParameter, "X-Public-Key",
		"The header X-Public-Key came more than once, with different values. Send it once.",
		"وردت الترويسة X-Public-Key أكثر من مرة بقيم مختلفة. أرسلها مرة واحدة.")
)

// Refusals of a customer's token.
var (
	errBearerMalformed = unauthenticated(
		"The Authorization header must come once, as \"Bearer <access token>\". Leave it out for a guest.",
		"يجب أن ترد الترويسة Authorization مرة واحدة بالصيغة \"Bearer <access token>\". احذفها إذا كان العميل زائرًا.")
	errNoCustomers = unauthenticated(
		"This service accepts no access tokens. Leave the Authorization header out.",
		"لا تقبل هذه الخدمة رموز الوصول. احذف الترويسة Authorization.")
	errTokenMalformed = unauthenticated(
		"The access token cannot be read: it must be a signed JSON Web Token of at most 8 KiB without critical extensions.",
		"تعذرت قراءة رمز الوصول: يجب أن يكون JSON Web Token موقّعًا لا يتجاوز 8 كيلوبايت وبلا امتدادات إلزامية.")
	errTokenType = unauthenticated(
		"The typ of the access token names another kind of token. It must be JWT or at+jwt, or be left out.",
		"تدل قيمة typ في رمز الوصول على نوع آخر من الرموز. يجب أن تكون JWT أو at+jwt أو أن تُحذف.")
	errTokenSignature = unauthenticated(
		"The access token's signature or algorithm is not accepted. Check that issuer and service use the same keys.",
		"توقيع رمز الوصول أو خوارزميته غير مقبولين. تحقق من أن جهة الإصدار والخدمة تستخدمان المفاتيح نفسها.")
	errTokenKeyUnknown = unauthenticated(
		"The issuer publishes no key that fits the access token's kid and alg. Obtain a new token.",
		"لا تنشر جهة الإصدار مفتاحًا يوافق kid و alg في رمز الوصول. احصل على رمز جديد.")
	errTokenExpired = unauthenticated(
		"The access token has expired. Obtain a new one.",
		"انتهت صلاحية رمز الوصول. احصل على رمز جديد.")
	errTokenNotYetValid = unauthenticated(
		"The access token is not valid yet. Check its nbf and the issuer's clock.",
		"لم تبدأ صلاحية رمز الوصول بعد. تحقق من nbf ومن ساعة جهة الإصدار.")
	errTokenIssuer = unauthenticated(
		"The iss of the access token is not the issuer this service accepts.",
		"قيمة iss في رمز الوصول ليست جهة الإصدار التي تقبلها هذه الخدمة.")
	errTokenAudience = unauthenticated(
		"The aud of the access token does not name this service.",
		"قيمة aud في رمز الوصول لا تشمل هذه الخدمة.")
	errTokenClaimMissing = unauthenticated(
		"The access token lacks a claim: exp is required, as are iss and aud where this service checks them.",
		"ينقص رمز الوصول حقل مطلوب: exp إلزامي، وكذلك iss و aud عندما تتحقق الخدمة منهما.")
	errTokenSubject = unauthenticated(
		"The sub of the access token must be the customer's id: 1 to 255 characters.",
		"يجب أن تكون قيمة sub في رمز الوصول معرّف العميل: من 1 إلى 255 محرفًا.")
	errTokenStoreID = unauthenticated(
		"The store_id of the access token must be a positive integer or its decimal text.",
		"يجب أن تكون قيمة store_id في رمز الوصول عددًا صحيحًا موجبًا أو نصه العشري.")
	errTokenNamesNoStore = unauthenticated(
		"The access token has no store_id and this service has no default store. Obtain a token with a store_id.",
		"لا يحتوي رمز الوصول على store_id وليس لهذه الخدمة متجر افتراضي. احصل على رمز يتضمن store_id.")
	errOtherStore = unauthenticated(
		"The access token belongs to another store than X-Public-Key names.",
		"رمز الوصول يخص متجرًا غير الذي تحدده الترويسة X-Public-Key.")
)

// Refusals of a store's token.
var (
	errAPITokenMissing = unauthenticated(
		"An API token is needed. Send it once, as \"Authorization: Bearer <id>|<secret>\".",
		"رمز API مطلوب. أرسله مرة واحدة بالصيغة \"Authorization: Bearer <id>|<secret>\".")
	errAPITokenInvalid = unauthenticated(
		"The API token is not valid: it is mistyped, was revoked, or is of another kind.",
		"رمز API غير صالح: إما أنه مكتوب خطأً أو أُلغي أو أنه من نوع آخر.")
)

func unauthenticated(en, ar string) *Error {
	return refusal(codeUnauthenticated, "Authorization", en, ar)
}
