package platform

import (
	"cmp"
	"net/http"
	"time"

	"commerce/auth/locale"
)

// Fault says why a platform's profile cannot be used, with the code and the status of the specification's
// tables.
type Fault struct {
	Code       string
	Status     int // of REST
	Content    locale.Sentence
	RetryAfter time.Duration // when a repeat may succeed; 0: not known
	Cause      error         // for the log; nil if the platform is at fault
}

// Error is for logs.
func (f *Fault) Error() string {
	if f.Cause != nil {
		return f.Code + ": " + f.Cause.Error()
	}
	return f.Code + ": " + f.Content.In(locale.En)
}

// with returns a copy of the fault with arguments of its content, and a cause.
func (f *Fault) with(cause error, args ...any) *Fault {
	told := *f
	told.Cause, told.Content = cause, f.Content.Text.With(args...)
	return &told
}

// after returns a copy of the fault with the time to wait before a retry.
func (f *Fault) after(wait time.Duration) *Fault {
	later := *f
	later.RetryAfter = cmp.Or(wait, time.Second)
	return &later
}

func newFault(code string, status int, content locale.Text) *Fault {
	return &Fault{Code: code, Status: status, Content: content.With()}
}

var (
	errURL = newFault("invalid_profile_url", http.StatusBadRequest, locale.Text{
		locale.En: "The request must name the platform's profile: an https URL on port 443 without a user name or a fragment.",
		locale.Ar: "يجب أن يذكر الطلب ملف المنصة التعريفي: رابط https على المنفذ 443 بلا اسم مستخدم وبلا جزء بعد #.",
	})

	// It is one text for both, so that nobody learns which names exist in the network of this service.
	errHost = newFault("invalid_profile_url", http.StatusBadRequest, locale.Text{
		locale.En: "The host of the platform's profile does not exist, or has no public address.",
		locale.Ar: "مضيف الملف التعريفي للمنصة غير موجود أو ليس له عنوان عام.",
	})

	errNoAnswer = newFault("profile_unreachable", http.StatusFailedDependency, locale.Text{
		locale.En: "The platform's profile could not be fetched: its server did not answer within a second, or closed the connection.",
		locale.Ar: "تعذر جلب الملف التعريفي للمنصة: لم يُجب خادمه خلال ثانية أو أغلق الاتصال.",
	})
	errStatus = newFault("profile_unreachable", http.StatusFailedDependency, locale.Text{
		locale.En: "The platform's profile could not be fetched: its server answered with status %d, and redirects are not followed.",
		locale.Ar: "تعذر جلب الملف التعريفي للمنصة: أجاب خادمه بالحالة %d، ولا تُتبع عمليات إعادة التوجيه.",
	})
	errTooLarge = newFault("profile_unreachable", http.StatusFailedDependency, locale.Text{
		locale.En: "The platform's profile could not be fetched: it is larger than 256 KB.",
		locale.Ar: "تعذر جلب الملف التعريفي للمنصة: حجمه أكبر من 256 كيلوبايت.",
	})

	errNotJSON = newFault("profile_malformed", http.StatusUnprocessableEntity, locale.Text{
		locale.En: "The platform's profile is not valid JSON.",
		locale.Ar: "الملف التعريفي للمنصة ليس JSON صالحًا.",
	})
	errMember = newFault("profile_malformed", http.StatusUnprocessableEntity, locale.Text{
		locale.En: "The platform's profile violates the schema of profiles at %s.",
		locale.Ar: "يخالف الملف التعريفي للمنصة مخطط الملفات التعريفية عند %s.",
	})

	errBusy = newFault("unavailable", http.StatusServiceUnavailable, locale.Text{
		locale.En: "The platform's profile is not known yet, and cannot be fetched now. Try again in a moment.",
		locale.Ar: "الملف التعريفي للمنصة غير معروف بعد، ولا يمكن جلبه الآن. حاول مرة أخرى بعد لحظة.",
	})
)
