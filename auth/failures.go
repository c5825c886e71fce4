package auth

import (
	"context"
	"errors"
	"slices"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
)

// countFailure counts err if it refuses a foreign token, and returns the error for the client. If
// the client is beyond the limit of invalid tokens, that is errTooManyFailures, a 429 instead of a
// 401, and err does not count. Valid tokens still work, because many clients may share one address.
func countFailure(ctx context.Context, quota *limit.Quota, client string, err error) error {
	if !foreign(err) {
		return err
	}
	if tooMany := quota.Refuse(client, errTooManyFailures); tooMany != nil {
		return tooMany
	}
	quota.Use(ctx, client)
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
