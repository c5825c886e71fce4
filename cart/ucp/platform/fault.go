package platform

import (
	"net/http"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// NewFault says why a profile cannot be used, by the specification's tables of errors.
func NewFault(code problem.Code, status int, content locale.Text, args ...any) *problem.Error {
	e := problem.New(code, "", content, args...)
	e.Status, e.Kind = status, problem.KindAgent
	return e
}

func badStatus(status int) *problem.Error {
	return NewFault("profile_unreachable", http.StatusFailedDependency, locale.Text{
		locale.En: "The platform's profile could not be fetched: its server answered with status %d, and redirects are not followed.",
		locale.Ar: "تعذر جلب الملف التعريفي للمنصة: أجاب خادمه بالحالة %d، ولا تُتبع عمليات إعادة التوجيه.",
	}, status)
}

func badMember(path string) *problem.Error {
	return NewFault("profile_malformed", http.StatusUnprocessableEntity, locale.Text{
		locale.En: "The platform's profile violates the schema of profiles at %s.",
		locale.Ar: "يخالف الملف التعريفي للمنصة مخطط الملفات التعريفية عند %s.",
	}, path)
}

var (
	errURL = NewFault("invalid_profile_url", http.StatusBadRequest, locale.Text{
		locale.En: "The UCP-Agent header, or meta.ucp-agent over MCP, must have the URL of the platform's profile: https on port 443, without a user name or a fragment.",
		locale.Ar: "يجب أن تحتوي الترويسة UCP-Agent، أو meta.ucp-agent عبر MCP، على رابط ملف المنصة التعريفي: https على المنفذ 443 بلا اسم مستخدم وبلا جزء بعد #.",
	})

	// It is one text for both, so that nobody learns which names exist in the network of this service.
	errHost = NewFault("invalid_profile_url", http.StatusBadRequest, locale.Text{
		locale.En: "The host of the platform's profile does not exist, or has no public address.",
		locale.Ar: "مضيف الملف التعريفي للمنصة غير موجود أو ليس له عنوان عام.",
	})

	errNoAnswer = NewFault("profile_unreachable", http.StatusFailedDependency, locale.Text{
		locale.En: "The platform's profile could not be fetched: its server did not answer within a second, or closed the connection.",
		locale.Ar: "تعذر جلب الملف التعريفي للمنصة: لم يُجب خادمه خلال ثانية أو أغلق الاتصال.",
	})
	errTooLarge = NewFault("profile_unreachable", http.StatusFailedDependency, locale.Text{
		locale.En: "The platform's profile could not be fetched: it is larger than 256 KB.",
		locale.Ar: "تعذر جلب الملف التعريفي للمنصة: حجمه أكبر من 256 كيلوبايت.",
	})

	errNotJSON = NewFault("profile_malformed", http.StatusUnprocessableEntity, locale.Text{
		locale.En: "The platform's profile is not valid JSON.",
		locale.Ar: "الملف التعريفي للمنصة ليس JSON صالحًا.",
	})

	errBusy = NewFault("unavailable", http.StatusServiceUnavailable, locale.Text{
		locale.En: "The platform's profile is not known yet, and cannot be fetched now. Try again in a moment.",
		locale.Ar: "الملف التعريفي للمنصة غير معروف بعد، ولا يمكن جلبه الآن. حاول مرة أخرى بعد لحظة.",
	})
)
