package subscriptions

import (
	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Errors of sources for which the caller gets no rows. Errors have no values of parameters, since
// those are customers' addresses and numbers.
var (
	ErrNotFound = problem.New(problem.SubscriptionNotFound, "", locale.Text{
		locale.En: "This store has no such subscription.",
		locale.Ar: "لا يوجد اشتراك بهذا الرقم في هذا المتجر.",
	})

	// ErrManySkips refuses a page far down a list immediately, so that it takes no connection.
	ErrManySkips = problem.New(problem.Unavailable, "", locale.Text{
		locale.En: "Too many pages far down a list are being read by page number. Follow next_page_url, which is as fast as page 1, or repeat the request in a moment.",
		locale.Ar: "تُقرأ حاليًا صفحات بعيدة كثيرة بأرقامها. اتبع next_page_url فهو بسرعة الصفحة الأولى، أو أعد إرسال الطلب بعد لحظات.",
	})

	errUnavailable = problem.New(problem.Unavailable, "", locale.Text{
		locale.En: "Subscriptions cannot be read right now. Repeat the request in a moment.",
		locale.Ar: "تتعذر قراءة الاشتراكات حاليًا. أعد إرسال الطلب بعد لحظات.",
	})
)

// Unavailable returns the error of a call that fails because the database does not answer, or
// because what it has cannot be shown.
func Unavailable(cause error) *problem.Error { return errUnavailable.Because(cause) }
