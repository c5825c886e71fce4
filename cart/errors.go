package cart

import (
	"errors"
	"fmt"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Unavailable returns the error for a dependency that failed: the change was not made, or
// the client can safely repeat it with its idempotency key. doing names the call that
// failed; cause is logged and not shown.
func Unavailable(doing string, cause error) *problem.Error {
	return problem.New(problem.Unavailable, "", textUnavailable).Because(fmt.Errorf("%s: %w", doing, cause))
}

// AsUnavailable returns an error that is a problem as it is, and otherwise Unavailable.
func AsUnavailable(doing string, err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	return Unavailable(doing, err)
}

// OutcomeUnknown returns the error for an undo, or a change without an idempotency key, that may have
// been made. doing names the call that failed; cause is logged and not shown.
func OutcomeUnknown(doing string, cause error) *problem.Error {
	return problem.New(problem.OutcomeUnknown, "", textOutcomeUnknown).Because(fmt.Errorf("%s: %w", doing, cause))
}

// Why a cart is not given away, and why a code opens nothing. ErrNoCode does not tell whether a code is used
// up, expired, deleted, of another store, or no code at all.
var (
	ErrEmpty  = problem.New(problem.CartEmpty, "", textCartEmpty)
	ErrNoCode = problem.New(problem.NotFound, "code", locale.Text{
		locale.En: "This link is no longer valid. Please ask for a new one.",
		locale.Ar: "لم يعد هذا الرابط صالحًا. يُرجى طلب رابط جديد.",
	})
)

var (
	textCartEmpty = locale.Text{
		locale.En: "The cart is empty.",
		locale.Ar: "السلة فارغة.",
	}
	textUnavailable = locale.Text{
		locale.En: "The cart is not available right now. Please try again in a moment.",
		locale.Ar: "تعذّر الوصول إلى السلة الآن. يُرجى المحاولة بعد لحظات.",
	}
	textOutcomeUnknown = locale.Text{
		locale.En: "We could not confirm that your change was made. Please check your cart before you try again.",
		locale.Ar: "لم نتمكن من التأكد من تنفيذ التغيير. يُرجى مراجعة سلتك قبل المحاولة مرة أخرى.",
	}
)
