package auth

import (
	"context"
	"errors"
	"slices"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
)

// failures limits the invalid tokens of a client. Beyond the limit, the client gets a 429
// instead of a 401. Its valid tokens still work, because many clients may share one address.
type failures struct{ *limit.Quota }

// count counts err if it refuses a foreign token, and returns the error for the client. If the
// client is beyond the limit, it returns errTooManyFailures instead of err, and does not count.
func (f failures) count(ctx context.Context, client string, err error) error {
	if !foreign(err) {
		return err
	}
	if tooMany := f.Refuse(client, errTooManyFailures); tooMany != nil {
		return tooMany
	}
	f.Use(ctx, client)
	return err
}

// foreign reports whether err refuses a token that neither this service nor its issuer made. An
// expired token, or one for another store, is genuine: a storefront that renders on its server
// may send thousands of them.
func foreign(err error) bool {
	return slices.ContainsFunc([]error{
		errTokenMalformed, errTokenType, errTokenSignature, errTokenKeyUnknown,
		errAPITokenMalformed, errAPITokenUnknown, errAPITokenSecret,
	}, func(refusal error) bool { return errors.Is(err, refusal) })
}

var errTooManyFailures = problem.New(problem.RateLimited, "Authorization", locale.Text{
	locale.En: "Too many requests with an invalid session or token came from your address. Please try again in a moment.",
	locale.Ar: "وردت من عنوانك طلبات كثيرة بجلسة أو رمز غير صالح. يُرجى المحاولة بعد لحظات.",
})
