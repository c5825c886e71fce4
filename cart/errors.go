package cart

import (
	"fmt"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Unavailable is a failure of something that carts depend on. A change was not made,
// or is safe to repeat with its idempotency key. doing names the call that failed.
func Unavailable(doing string, cause error) *problem.Error {
	return problem.New(problem.Unavailable, "", textUnavailable).Because(fmt.Errorf("%s: %w", doing, cause))
}

// OutcomeUnknown is a change without an idempotency key that may have been made.
func OutcomeUnknown(doing string, cause error) *problem.Error {
	return problem.New(problem.OutcomeUnknown, "", textOutcomeUnknown).Because(fmt.Errorf("%s: %w", doing, cause))
}

var (
	textUnavailable = locale.Text{
		locale.En: "The cart cannot be reached right now. Please try again in a moment.",
		locale.Ar: "تعذّر الوصول إلى السلة الآن. يُرجى المحاولة بعد لحظات.",
	}
	textOutcomeUnknown = locale.Text{
		locale.En: "We could not confirm that your change was made. Please check your cart before you try again.",
		locale.Ar: "لم نتمكن من التأكد من تنفيذ التغيير. يُرجى مراجعة سلتك قبل المحاولة مرة أخرى.",
	}
)
