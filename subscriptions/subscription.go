// Package subscriptions has the rules of stores' subscriptions: what a status means, and which
// subscriptions a filter matches. Postgres is read in the package postgres, and HTTP is served in
// subscriptionshttp. What else a merchant may use is in a package of its own, which these do not know: changes
// in feed, the past in history, counts and revenue in figures, Postgres replicas in replicas.
package subscriptions

import (
	"time"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/period"
)

// Subscription is a product that a customer buys again each period. A time that does not
// apply is the zero time.
type Subscription struct {
	ID, StoreID, CustomerID int64

	Status Status

	// ExternalCustomerID is the merchant's ID of the customer, from the checkout; "" for none.
	ExternalCustomerID string

	StartsAt, EndsAt       time.Time
	PeriodStart, PeriodEnd time.Time // of the current period
	TrialEndsAt            time.Time

	CancelAtPeriodEnd bool
	CanceledAt        time.Time // time of the request, not when it takes effect

	// CancellationReason is why it ends, at most 200 characters; "" if that is not known.
	CancellationReason string

	// PausedAt and PausedRemainingDays are set only while paused. The days are the rest
	// of the period at that time. They are added to the next period.
	PausedAt            time.Time
	PausedRemainingDays int

	// NextRetryAt is set only while past due. Access continues until GraceEndsAt.
	NextRetryAt, GraceEndsAt time.Time

	Duration period.Duration
	OrderID  int64

	// Price is the price at the creation of the subscription, in minor units of
	// Currency (ISO 4217). The variant's price may have changed since.
	Price    money.Amount
	Currency string

	Product   Product
	Variant   Variant
	Scheduled *Variant // takes over at the next renewal; nil for none

	Card     *Card  // saved for renewals; nil for none
	Metadata []byte // a JSON object from the checkout; nil for none

	CreatedAt, UpdatedAt time.Time
}

// Product is the product of a subscription. A source may return its name only in the
// language that the call asks for.
type Product struct {
	ID         int64
	Name       locale.Name
	Slug, Type string
}

// Variant is a duration of a product's subscriptions and its current price, in minor units
// of the store's currency.
type Variant struct {
	ID       int64
	Duration period.Duration
	Price    money.Amount
}

// Card has the parts of a saved card that may be shown.
type Card struct {
	LastFour, Scheme string
}

// Customer has the members that filters match.
type Customer struct {
	ID, StoreID int64
	Email       string

	// Phone is in any format, as it was entered. CallingCode is the country's, in
	// digits; "" if it is not known.
	Phone, CallingCode string
}

// The first and the last time that can be shown: years have four digits. The first one is not the
// zero time, which means null.
var (
	firstShown = time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)
	lastShown  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// Shown returns the nearest time that can be shown. Postgres can store earlier and later ones, and a
// list is in the order of what is stored.
func Shown(t time.Time) time.Time {
	switch {
	case t.Before(time.Time{}):
		return firstShown
	case t.After(lastShown):
		return lastShown
	}
	return t
}

// MaxExternalCustomer is the maximum number of characters of an external ID.
const MaxExternalCustomer = 255
