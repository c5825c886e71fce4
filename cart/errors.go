package cart

import (
	"commerce/auth/locale"
)

// Code is the stable word for what went wrong, for programs. The transport decides
// which status each one has.
type Code string

// The codes of a refused or failed call. Most also name the issue of a line that
// would not pass validation.
const (
	CodeMalformedJSON        Code = "malformed_json"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeInvalidParameter     Code = "invalid_parameter"
	CodeValidationFailed     Code = "validation_failed"
	CodeUnavailable          Code = "unavailable"
	CodeOutcomeUnknown       Code = "outcome_unknown"

	CodeCouponInvalid Code = "coupon_invalid" // also a warning
	CodeCouponMinimum Code = "coupon_minimum"

	CodeItemNotFound        Code = "item_not_found"
	CodeVersionMismatch     Code = "version_mismatch"
	CodeIdempotencyConflict Code = "idempotency_conflict"
	CodeCartInvalid         Code = "cart_invalid"
	CodeCartFull            Code = "cart_full"
	CodeQuantityOutOfRange  Code = "quantity_out_of_range"

	CodeProductNotFound   Code = "product_not_found"
	CodeProductInactive   Code = "product_inactive"
	CodeOutOfStock        Code = "out_of_stock"
	CodeInsufficientStock Code = "insufficient_stock"
	CodePlanUnavailable   Code = "plan_unavailable"
	CodeFieldMissing      Code = "field_missing"
	CodeFieldInvalid      Code = "field_invalid"

	// Only of issues and warnings, never of an error.

	CodeCartEmpty        Code = "cart_empty"
	CodeBelowMinQuantity Code = "below_min_quantity"
	CodeAboveMaxQuantity Code = "above_max_quantity"
	CodePriceChanged     Code = "price_changed"
	CodeLowStock         Code = "low_stock"
)

// Error is a call that was refused or failed. A refusal changed nothing, and neither
// did what is unavailable, unless it carried an idempotency key and is safe to repeat.
// With outcome_unknown the change may have been made.
type Error struct {
	code   Code
	faults []fault // at least one; the first gives the message
	cause  error   // for the log only; nil when the refusal itself is all there is

	current    *Priced      // with version_mismatch: the cart as it is now
	validation *Validation  // with cart_invalid
	merged     *MergeReport // of what was merged before the refusal; nil for nothing
	data       []byte       // the rendered data member; nil for null
	language   locale.Locale
}

// fault is one thing that is wrong: the member of the request it is about ("" for
// none) and what to tell a person.
type fault struct {
	member string
	phrase phrase
	args   []any
}

func refuse(code Code, member string, p phrase, args ...any) *Error {
	return &Error{code: code, faults: []fault{{member: member, phrase: p, args: args}}}
}

// together makes one refusal of several. It has the code of the first and names what
// each of them names. It leaves out nil ones and returns nil when all are.
func together(refusals ...*Error) *Error {
	var all *Error
	for _, r := range refusals {
		switch {
		case r == nil:
		case all == nil:
			all = r
		default:
			all.faults = append(all.faults, r.faults...)
		}
	}
	return all
}

// unavailable wraps a failure of something behind us.
func unavailable(doing string, cause error) *Error {
	return &Error{code: CodeUnavailable, faults: []fault{{phrase: sayUnavailable}}, cause: &failedCall{doing, cause}}
}

// outcomeUnknown is a change without an idempotency key that may have been made.
func outcomeUnknown(doing string, cause error) *Error {
	return &Error{code: CodeOutcomeUnknown, faults: []fault{{phrase: sayOutcomeUnknown}}, cause: &failedCall{doing, cause}}
}

type failedCall struct {
	doing string
	err   error
}

func (f *failedCall) Error() string { return f.doing + ": " + f.err.Error() }
func (f *failedCall) Unwrap() error { return f.err }

// Error is for logs: English, with the cause.
func (e *Error) Error() string {
	text := string(e.code) + ": " + e.faults[0].text(locale.En)
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.cause }

// Code is the stable word for programs.
func (e *Error) Code() string { return string(e.code) }

// Language is the one that the caller asked for, else the store's; "" when the
// call failed before either was known.
func (e *Error) Language() locale.Locale { return e.language }

// Message is a sentence that the shopper or the developer can act on.
func (e *Error) Message(l locale.Locale) string { return e.faults[0].text(l) }

// Faults maps each member of the request at fault to its sentences; nil when the
// request as a whole is refused.
func (e *Error) Faults(l locale.Locale) map[string][]string {
	var byMember map[string][]string
	for _, f := range e.faults {
		if f.member == "" {
			continue
		}
		if byMember == nil {
			byMember = map[string][]string{}
		}
		byMember[f.member] = append(byMember[f.member], f.text(l))
	}
	return byMember
}

// Data is what the answer carries beside the error, as JSON; nil for nothing.
func (e *Error) Data() []byte { return e.data }
