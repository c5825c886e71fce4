package subscriptionshttp

import (
	"fmt"
	"time"

	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions"
)

// CheckCurrencies fails if the decimals of a store's currency, or of that of one of its
// subscriptions, are not known: an amount could be wrong by a factor of a hundred.
func CheckCurrencies(s *store.Store, rows []subscriptions.Subscription) error {
	if !money.Known(s.Currency) {
		return problem.UnknownCurrency(fmt.Sprintf("store %d", s.ID), s.Currency)
	}
	for i := range rows {
		if currency := rows[i].Currency; !money.Known(currency) {
			e := problem.UnknownCurrency(fmt.Sprintf("subscription %d of store %d", rows[i].ID, s.ID), currency)
			e.Faults[0].Sentence = textUnknownCurrency.With(rows[i].ID, currency)
			return e
		}
	}
	return nil
}

// Members is where a View writes: a wire.Writer, or lines of CSV.
type Members interface {
	Number(name string, n int64)
	Text(name, value string)
	Optional(name, value string)                  // null for ""
	Time(name string, t time.Time, layout string) // in UTC
	Bool(name string, value bool)
	Null(name string)
	JSON(name string, value []byte)
	Amount(name string, a money.Amount, digits int)
	Object(name string)
	EndObject()
}

// View writes subscriptions as the store's programs read them. All their currencies are known.
type View struct {
	Members
	texts *wire.Writer // has the language, and formats prices
	store *store.Store
	now   time.Time
}

// A date is written in UTC with one of these layouts. The list uses seconds. A single subscription
// uses days for dates that people read and instants for those that programs use.
const (
	seconds  = "2006-01-02 15:04:05"
	days     = "2006-01-02"
	Instants = "2006-01-02T15:04:05.000000Z"
)

// Time writes the nearest time that can be shown.
func (v *View) Time(name string, t time.Time, layout string) {
	v.Members.Time(name, subscriptions.Shown(t), layout)
}

// Instant writes null for the zero time.
func (v *View) Instant(name string, at time.Time) {
	if at.IsZero() {
		v.Null(name)
		return
	}
	v.Time(name, at, Instants)
}

// amount writes an amount of a known currency.
func (v *View) amount(name string, a money.Amount, currency string) {
	digits, _ := money.Digits(currency)
	v.Amount(name, a, digits)
}

// Full writes the members of a single subscription, which has more than one of the list.
func (v *View) Full(s *subscriptions.Subscription) {
	v.subscription(s, days, Instants)
	if s.Scheduled == nil {
		v.Null("scheduled_variant")
	} else {
		v.variant("scheduled_variant", s.Scheduled)
	}
	v.Optional("cancellation_reason", s.CancellationReason)
	switch s.Status {
	case subscriptions.Paused:
		v.Instant("paused_at", s.PausedAt)
		v.Number("paused_remaining_days", int64(s.PausedRemainingDays))
	case subscriptions.PastDue:
		v.Instant("next_retry_at", s.NextRetryAt)
	}
}

// subscription writes the members that both answers have. dates and periods are the layouts of
// its dates.
func (v *View) subscription(s *subscriptions.Subscription, dates, periods string) {
	v.Number("id", s.ID)
	v.Text("status", string(s.Status))
	v.Optional("external_customer_id", s.ExternalCustomerID)
	v.Time("starts_at", s.StartsAt, dates)
	v.Time("ends_at", s.EndsAt, dates)
	v.Time("start_date", s.StartsAt, dates)
	v.Time("end_date", s.EndsAt, dates)
	v.Time("current_period_start", s.PeriodStart, periods)
	v.Time("current_period_end", s.PeriodEnd, periods)
	v.Instant("trial_ends_at", s.TrialEndsAt)
	v.Bool("cancel_at_period_end", s.CancelAtPeriodEnd)
	v.Instant("canceled_at", s.CanceledAt)
	v.Text("duration", string(s.Duration))
	v.Number("order_id", s.OrderID)
	card := s.PaymentMethod()
	v.Bool("auto_renew", card != nil)

	v.Object("price")
	v.Price(s.Price, s.Currency)
	v.EndObject()

	v.Object("product")
	v.Number("id", s.Product.ID)
	v.Text("name", s.Product.Name.In(v.texts.Language))
	v.Text("slug", s.Product.Slug)
	v.Text("type", s.Product.Type)
	v.EndObject()

	v.variant("variant", &s.Variant)
	v.Card("payment_method", card)
	if s.Metadata == nil {
		v.Null("metadata")
	} else {
		v.JSON("metadata", s.Metadata)
	}
	v.Null("features")
	v.Bool("is_active", s.GrantsAccess(v.now))
	v.Bool("is_expired", s.HasExpired(v.now))
	v.Number("days_remaining", int64(s.DaysRemaining(v.now)))
	v.Instant("grace_ends_at", s.GraceEnd())
	v.Instant("created_at", s.CreatedAt)
	v.Instant("updated_at", s.UpdatedAt)
}

// Price writes the members of a price.
func (v *View) Price(a money.Amount, currency string) {
	v.amount("amount", a, currency)
	v.Text("formatted", v.texts.Formatted(a, currency))
	v.Text("currency", currency)
}

// Card writes null for none.
func (v *View) Card(name string, c *subscriptions.Card) {
	if c == nil {
		v.Null(name)
		return
	}
	v.Object(name)
	v.Text("last_four", c.LastFour)
	v.Text("scheme", c.Scheme)
	v.EndObject()
}

func (v *View) variant(name string, variant *subscriptions.Variant) {
	v.Object(name)
	v.Number("id", variant.ID)
	v.Text("duration", string(variant.Duration))
	v.Text("duration_text", variant.Duration.Label(v.texts.Language))
	v.amount("price", variant.Price, v.store.Currency)
	v.EndObject()
}
