package subscriptions

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/cart/money"
)

// wire writes what goes to a merchant's program. It appends JSON member by member:
// a page has some four hundred, and an encoder that looks at types costs more than
// the database does.
type wire struct {
	b        []byte
	language locale.Locale
	digits   int // decimals of the store's currency
	prices   *money.Formatter
	now      time.Time
}

// member begins a member of the object that is being written. Names are ours, and
// need no escapes.
func (w *wire) member(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *wire) raw(s string) { w.b = append(w.b, s...) }

func (w *wire) null(name string) {
	w.member(name)
	w.raw("null")
}

func (w *wire) text(name, value string) {
	w.member(name)
	w.b, _ = jsontext.AppendQuote(w.b, value) // replaces what is no UTF-8, and says so
}

// optional writes null for "".
func (w *wire) optional(name, value string) {
	if value == "" {
		w.null(name)
		return
	}
	w.text(name, value)
}

func (w *wire) number(name string, n int64) {
	w.member(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *wire) truth(name string, b bool) {
	w.member(name)
	w.b = strconv.AppendBool(w.b, b)
}

// amount writes money as a number in major units, exact to its decimals.
func (w *wire) amount(name string, a money.Amount, digits int) {
	w.member(name)
	w.b = money.AppendMajor(w.b, a, digits)
}

func (w *wire) date(name string, at time.Time, f dateForm) {
	w.member(name)
	w.b = append(w.b, '"')
	w.b = f.append(w.b, at)
	w.b = append(w.b, '"')
}

// instant writes null for the zero time.
func (w *wire) instant(name string, at time.Time) {
	if at.IsZero() {
		w.null(name)
		return
	}
	w.date(name, at, instants)
}

// page writes the page object. path is the list's URL without a query.
func (w *wire) page(p *page, path string) {
	w.raw("{")
	w.number("current_page", int64(p.number))
	w.member("data")
	w.raw("[")
	for i := range p.rows {
		if i > 0 {
			w.raw(",")
		}
		w.item(&p.rows[i])
	}
	w.raw("]")
	w.text("first_page_url", path+p.numbered(1))
	if from, to, ok := p.span(); ok {
		w.number("from", int64(from))
		w.number("to", int64(to))
	} else {
		w.null("from")
		w.null("to")
	}
	w.link("next_page_url", path, p.older)
	w.link("prev_page_url", path, p.newer)
	w.text("path", path)
	w.number("per_page", int64(p.perPage))
	w.raw("}")
}

func (w *wire) link(name, path, query string) {
	if query == "" {
		w.null(name)
		return
	}
	w.text(name, path+query)
}

// item writes a subscription as the list shows it.
func (w *wire) item(s *Subscription) {
	w.raw("{")
	w.subscription(s, seconds, seconds)
	w.raw("}")
}

// full writes a subscription with what only the single one shows.
func (w *wire) full(s *Subscription) {
	w.raw("{")
	w.subscription(s, days, instants)
	if s.Scheduled == nil {
		w.null("scheduled_variant")
	} else {
		w.variant("scheduled_variant", s.Scheduled)
	}
	switch s.Status {
	case Paused:
		w.instant("paused_at", s.PausedAt)
		w.number("paused_remaining_days", int64(s.PausedRemainingDays))
	case PastDue:
		w.instant("next_retry_at", s.NextRetryAt)
	}
	w.raw("}")
}

// subscription writes the members that both answers have, dates in the given forms.
func (w *wire) subscription(s *Subscription, dates, periods dateForm) {
	w.number("id", s.ID)
	w.text("status", string(s.Status))
	w.optional("external_customer_id", s.ExternalCustomerID)
	w.date("starts_at", s.StartsAt, dates)
	w.date("ends_at", s.EndsAt, dates)
	w.date("start_date", s.StartsAt, dates)
	w.date("end_date", s.EndsAt, dates)
	w.date("current_period_start", s.PeriodStart, periods)
	w.date("current_period_end", s.PeriodEnd, periods)
	w.instant("trial_ends_at", s.TrialEndsAt)
	w.truth("cancel_at_period_end", s.CancelAtPeriodEnd)
	w.instant("canceled_at", s.CanceledAt)
	w.text("duration", string(s.Duration))
	w.number("order_id", s.OrderID)
	w.truth("auto_renew", s.RenewsItself())
	w.price(s)
	w.product(&s.Product)
	w.variant("variant", &s.Variant)
	w.paymentMethod(s.PaymentMethod())
	if s.Metadata == nil {
		w.null("metadata")
	} else {
		w.member("metadata")
		w.b = append(w.b, s.Metadata...)
	}
	w.null("features")
	w.truth("is_active", s.GrantsAccess(w.now))
	w.truth("is_expired", s.HasExpired(w.now))
	w.number("days_remaining", int64(s.DaysRemaining(w.now)))
	w.instant("created_at", s.CreatedAt)
	w.instant("updated_at", s.UpdatedAt)
}

func (w *wire) price(s *Subscription) {
	digits, _ := money.Digits(s.Currency)
	w.member("price")
	w.raw("{")
	w.amount("amount", s.Price, digits)
	w.text("formatted", w.prices.Format(s.Price, s.Currency, w.language))
	w.text("currency", s.Currency)
	w.raw("}")
}

func (w *wire) product(p *Product) {
	w.member("product")
	w.raw("{")
	w.number("id", p.ID)
	w.text("name", p.Name)
	w.text("slug", p.Slug)
	w.text("type", p.Type)
	w.raw("}")
}

func (w *wire) variant(name string, v *Variant) {
	w.member(name)
	w.raw("{")
	w.number("id", v.ID)
	w.text("duration", string(v.Duration))
	w.text("duration_text", v.Duration.Label(w.language))
	w.amount("price", v.Price, w.digits)
	w.raw("}")
}

func (w *wire) paymentMethod(c *Card) {
	if c == nil {
		w.null("payment_method")
		return
	}
	w.member("payment_method")
	w.raw("{")
	w.text("last_four", c.LastFour)
	w.text("scheme", c.Scheme)
	w.raw("}")
}
