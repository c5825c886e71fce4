// Package subscriptions lets a store's own programs read what its customers have
// subscribed to: a list, newest first, that costs the same on its last page as on
// its first, and one subscription in full.
package subscriptions

import (
	"time"

	"commerce/cart/money"
	"commerce/cart/period"
)

// Status is where a subscription stands in its life.
type Status string

// The six states a subscription can be in.
const (
	Trialing Status = "trialing"
	Active   Status = "active"
	PastDue  Status = "past_due"
	Paused   Status = "paused"
	Canceled Status = "canceled"
	Expired  Status = "expired"
)

// Subscription is what a store sells one customer again each period. A time that
// does not apply is the zero time.
type Subscription struct {
	ID, StoreID, CustomerID int64

	Status Status

	// ExternalCustomerID is the merchant's own name for the customer, given when
	// the checkout was made; "" for none.
	ExternalCustomerID string

	StartsAt, EndsAt       time.Time
	PeriodStart, PeriodEnd time.Time // of the current period
	TrialEndsAt            time.Time

	CancelAtPeriodEnd bool
	CanceledAt        time.Time // when it was asked for, not when it takes effect

	// PausedAt and PausedRemainingDays are set exactly while paused. The days are
	// what was left of the period then, to be added to the next one.
	PausedAt            time.Time
	PausedRemainingDays int

	// NextRetryAt is set exactly while past due. Access goes on until GraceEndsAt.
	NextRetryAt, GraceEndsAt time.Time

	Duration period.Duration
	OrderID  int64

	// Price was locked when the subscription was created, in minor units of
	// Currency (ISO 4217); the variant's may have changed since.
	Price    money.Amount
	Currency string

	Product   Product
	Variant   Variant
	Scheduled *Variant // takes over at the next renewal; nil for none

	Card     *Card  // saved for renewals; nil for none
	Metadata []byte // a JSON object as the checkout gave it; nil for none

	CreatedAt, UpdatedAt time.Time
}

// Product is what is subscribed to.
type Product struct {
	ID               int64
	Name, Slug, Type string
}

// Variant is one way to subscribe to a product: for how long, at which price now,
// in minor units of the store's currency.
type Variant struct {
	ID       int64
	Duration period.Duration
	Price    money.Amount
}

// Card is a saved card, as far as it may be shown.
type Card struct {
	LastFour, Scheme string
}

// Customer is whom filters look for.
type Customer struct {
	ID, StoreID int64
	Email       string

	// Phone is as it was given, in any spelling. CallingCode is the country's, in
	// digits; "" where it is not known.
	Phone, CallingCode string
}
