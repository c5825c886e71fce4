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

	// ErrCursorExpired means that the changes after a cursor are no longer known, or that the
	// database is not the one in which the cursor was made.
	ErrCursorExpired = problem.New(problem.CursorExpired, "after", locale.Text{
		locale.En: "The changes after this cursor are no longer known. Start again without after.",
		locale.Ar: "لم تعد التغييرات بعد هذه القيمة معروفة. ابدأ من جديد دون after.",
	})

	// ErrNoChanges is for a database that does not record changes, because it is sharded by store.
	// Repeating the request does not help.
	ErrNoChanges = problem.New(problem.NotFound, "", locale.Text{
		locale.En: "This service does not record changes of subscriptions. Read the list instead.",
		locale.Ar: "لا تسجّل هذه الخدمة تغييرات الاشتراكات. اقرأ القائمة بدلًا من ذلك.",
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
