package problem

import (
	"cmp"
	"maps"
)

// Code is the stable word for what went wrong, for programs.
type Code string

const (
	MalformedJSON        Code = "malformed_json"
	InvalidParameter     Code = "invalid_parameter"
	StoreRequired        Code = "store_required"
	StoreUnknown         Code = "store_unknown"
	CartInvalid          Code = "cart_invalid"
	Unauthenticated      Code = "unauthenticated"
	NotFound             Code = "not_found"
	ProductNotFound      Code = "product_not_found"
	ItemNotFound         Code = "item_not_found"
	SubscriptionNotFound Code = "subscription_not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	IdempotencyConflict  Code = "idempotency_conflict"
	CursorExpired        Code = "cursor_expired"
	VersionMismatch      Code = "version_mismatch"
	BodyTooLarge         Code = "body_too_large"
	UnsupportedMediaType Code = "unsupported_media_type"
	ValidationFailed     Code = "validation_failed"
	InsufficientStock    Code = "insufficient_stock"
	OutOfStock           Code = "out_of_stock"
	ProductInactive      Code = "product_inactive"
	PlanUnavailable      Code = "plan_unavailable"
	FieldMissing         Code = "field_missing"
	FieldInvalid         Code = "field_invalid"
	QuantityOutOfRange   Code = "quantity_out_of_range"
	CartFull             Code = "cart_full"
	PriceChanged         Code = "price_changed"
	CouponInvalid        Code = "coupon_invalid"
	CouponMinimum        Code = "coupon_minimum"
	GuestOnly            Code = "guest_only"
	CartEmpty            Code = "cart_empty"
	RateLimited          Code = "rate_limited"
	Internal             Code = "internal"
	Unavailable          Code = "unavailable"
	OutcomeUnknown       Code = "outcome_unknown"
)

// statuses is the only table of HTTP statuses. The OpenAPI document lists the same codes.
var statuses = byCode(map[int][]Code{
	400: {MalformedJSON, InvalidParameter, StoreRequired, StoreUnknown, CartInvalid},
	401: {Unauthenticated},
	404: {NotFound, ProductNotFound, ItemNotFound, SubscriptionNotFound},
	405: {MethodNotAllowed},
	409: {IdempotencyConflict},
	410: {CursorExpired},
	412: {VersionMismatch},
	413: {BodyTooLarge},
	415: {UnsupportedMediaType},
	422: {
		ValidationFailed, InsufficientStock, OutOfStock, ProductInactive, PlanUnavailable, FieldMissing, FieldInvalid,
		QuantityOutOfRange, CartFull, PriceChanged, CouponInvalid, CouponMinimum, GuestOnly, CartEmpty,
	},
	429: {RateLimited},
	500: {Internal},
	503: {Unavailable},
	504: {OutcomeUnknown},
})

func byCode(all map[int][]Code) map[Code]int {
	statuses := map[Code]int{}
	for status, codes := range all {
		for _, code := range codes {
			statuses[code] = status
		}
	}
	return statuses
}

// HTTPStatus returns the status of the response with the error; 0 for a code that has none.
func (e *Error) HTTPStatus() int { return cmp.Or(e.Status, statuses[e.Code]) }

// Statuses returns the HTTP status of each code.
func Statuses() map[Code]int { return maps.Clone(statuses) }
