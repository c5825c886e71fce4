package subscriptions

import (
	"fmt"
	"time"

	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/cart/wire"
)

// digitsOf returns the decimals of a store's currency, and those of each of its
// subscriptions. An unknown currency is unavailable: an amount in it could be wrong by a
// factor of a hundred.
func digitsOf(s *store.Store, rows []Subscription) (ofStore int, ofRows []int, err error) {
	ofStore, known := money.Digits(s.Currency)
	if !known {
		return 0, nil, unavailable(fmt.Errorf("store %d: unknown currency %q", s.ID, s.Currency))
	}
	ofRows = make([]int, len(rows))
	last, digits := s.Currency, ofStore
	for i := range rows {
		if currency := rows[i].Currency; currency != last {
			if digits, known = money.Digits(currency); !known {
				return 0, nil, unavailable(fmt.Errorf("subscription %d of store %d: unknown currency %q", rows[i].ID, s.ID, currency))
			}
			last = currency
		}
		ofRows[i] = digits
	}
	return ofStore, ofRows, nil
}

// view writes subscriptions as the store's programs read them.
type view struct {
	*wire.Writer
	storeDigits int // decimals of the store's currency
	now         time.Time
}

func (v *view) date(name string, at time.Time, f dateForm) {
	v.JSON(name, f.quoted(at))
}

// instant writes null for the zero time.
func (v *view) instant(name string, at time.Time) {
	if at.IsZero() {
		v.Null(name)
		return
	}
	v.date(name, at, instants)
}

// page writes a page of the list. digits are the decimals of its subscriptions' currencies,
// path is the list's URL without a query.
func (v *view) page(p *page, digits []int, path string) {
	v.BeginObject()
	v.Number("current_page", int64(p.number))
	v.Array("data")
	for i := range p.rows {
		v.item(&p.rows[i], digits[i])
	}
	v.EndArray()
	v.Text("first_page_url", path+p.numbered(1))
	if from, to, ok := p.span(); ok {
		v.Number("from", int64(from))
		v.Number("to", int64(to))
	} else {
		v.Null("from")
		v.Null("to")
	}
	v.link("next_page_url", path, p.older)
	v.link("prev_page_url", path, p.newer)
	v.Text("path", path)
	v.Number("per_page", int64(p.perPage))
	v.EndObject()
}

// link writes null if there is no query.
func (v *view) link(name, path, query string) {
	if query == "" {
		v.Null(name)
		return
	}
	v.Text(name, path+query)
}

// item writes a subscription of the list.
func (v *view) item(s *Subscription, digits int) {
	v.BeginObject()
	v.subscription(s, digits, seconds, seconds)
	v.EndObject()
}

// full writes a single subscription, which has more members than one of the list.
func (v *view) full(s *Subscription, digits int) {
	v.BeginObject()
	v.subscription(s, digits, days, instants)
	if s.Scheduled == nil {
		v.Null("scheduled_variant")
	} else {
		v.variant("scheduled_variant", s.Scheduled)
	}
	switch s.Status {
	case Paused:
		v.instant("paused_at", s.PausedAt)
		v.Number("paused_remaining_days", int64(s.PausedRemainingDays))
	case PastDue:
		v.instant("next_retry_at", s.NextRetryAt)
	}
	v.EndObject()
}

func (v *view) deletion(d Deletion) {
	v.BeginObject()
	v.Number("id", d.ID)
	v.instant("deleted_at", d.At)
	v.EndObject()
}

// changes writes a page of changes.
func (v *view) changes(c *Changes, digits []int, store int64) {
	v.BeginObject()
	v.Array("data")
	for i := range c.Changed {
		v.full(&c.Changed[i], digits[i])
	}
	v.EndArray()
	v.Array("deleted")
	for _, d := range c.Deleted {
		v.deletion(d)
	}
	v.EndArray()
	v.Text("next", c.Next.Text(store))
	v.Bool("has_more", c.More)
	v.EndObject()
}

// subscription writes the members that both answers have. digits are the decimals of its
// currency, dates and periods the forms of its dates.
func (v *view) subscription(s *Subscription, digits int, dates, periods dateForm) {
	v.Number("id", s.ID)
	v.Text("status", string(s.Status))
	v.Optional("external_customer_id", s.ExternalCustomerID)
	starts, ends := dates.quoted(s.StartsAt), dates.quoted(s.EndsAt)
	v.JSON("starts_at", starts)
	v.JSON("ends_at", ends)
	v.JSON("start_date", starts)
	v.JSON("end_date", ends)
	v.date("current_period_start", s.PeriodStart, periods)
	v.date("current_period_end", s.PeriodEnd, periods)
	v.instant("trial_ends_at", s.TrialEndsAt)
	v.Bool("cancel_at_period_end", s.CancelAtPeriodEnd)
	v.instant("canceled_at", s.CanceledAt)
	v.Text("duration", string(s.Duration))
	v.Number("order_id", s.OrderID)
	v.Bool("auto_renew", s.RenewsItself())
	v.price(s, digits)
	v.product(&s.Product)
	v.variant("variant", &s.Variant)
	v.paymentMethod(s.PaymentMethod())
	if s.Metadata == nil {
		v.Null("metadata")
	} else {
		v.JSON("metadata", s.Metadata)
	}
	v.Null("features")
	v.Bool("is_active", s.GrantsAccess(v.now))
	v.Bool("is_expired", s.HasExpired(v.now))
	v.Number("days_remaining", int64(s.DaysRemaining(v.now)))
	v.instant("created_at", s.CreatedAt)
	v.instant("updated_at", s.UpdatedAt)
}

func (v *view) price(s *Subscription, digits int) {
	v.Object("price")
	v.Amount("amount", s.Price, digits)
	v.Price("formatted", s.Price, s.Currency)
	v.Text("currency", s.Currency)
	v.EndObject()
}

func (v *view) product(p *Product) {
	v.Object("product")
	v.Number("id", p.ID)
	v.Text("name", p.Name.In(v.Language))
	v.Text("slug", p.Slug)
	v.Text("type", p.Type)
	v.EndObject()
}

func (v *view) variant(name string, variant *Variant) {
	v.Object(name)
	v.Number("id", variant.ID)
	v.Text("duration", string(variant.Duration))
	v.Text("duration_text", variant.Duration.Label(v.Language))
	v.Amount("price", variant.Price, v.storeDigits)
	v.EndObject()
}

func (v *view) paymentMethod(c *Card) {
	if c == nil {
		v.Null("payment_method")
		return
	}
	v.Object("payment_method")
	v.Text("last_four", c.LastFour)
	v.Text("scheme", c.Scheme)
	v.EndObject()
}
