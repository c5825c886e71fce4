package subscriptions

import (
	"strconv"
	"strings"
	"time"

	"commerce/cart/money"
)

// csvColumns are the columns of CSV: the kind of the line (row, deleted or next), the cursor
// of a next, and the members of a single subscription, nested ones with a dot.
var csvColumns = []string{
	"kind", "cursor", "id", "status", "external_customer_id", "starts_at", "ends_at", "start_date", "end_date",
	"current_period_start", "current_period_end", "trial_ends_at", "cancel_at_period_end", "canceled_at",
	"duration", "order_id", "auto_renew", "price.amount", "price.formatted", "price.currency",
	"product.id", "product.name", "product.slug", "product.type",
	"variant.id", "variant.duration", "variant.duration_text", "variant.price",
	"payment_method.last_four", "payment_method.scheme", "metadata", "features",
	"is_active", "is_expired", "days_remaining", "created_at", "updated_at",
	"scheduled_variant.id", "scheduled_variant.duration", "scheduled_variant.duration_text", "scheduled_variant.price",
	"paused_at", "paused_remaining_days", "next_retry_at", "deleted_at",
}

// csvLines writes RFC 4180, with the cells of a line in the order of the columns. They have the
// values of NDJSON, and null is an empty cell. Line breaks inside of cells stay as they are, which
// encoding/csv would change.
type csvLines struct {
	lines []byte
	begun bool // the header is written
	cells int  // of the current line
}

func (c *csvLines) reset() {
	c.lines = c.lines[:0]
	if !c.begun {
		c.lines = append(append(c.lines, strings.Join(csvColumns, ",")...), "\r\n"...)
		c.begun = true
	}
}

func (c *csvLines) bytes() []byte { return c.lines }

func (c *csvLines) changed(v *view, s *Subscription, digits int) {
	c.text("row")
	c.empty(1)
	c.number(s.ID)
	c.text(string(s.Status))
	c.text(s.ExternalCustomerID)
	for range 2 { // starts_at and ends_at, start_date and end_date
		c.date(days, s.StartsAt)
		c.date(days, s.EndsAt)
	}
	c.date(instants, s.PeriodStart)
	c.date(instants, s.PeriodEnd)
	c.instant(s.TrialEndsAt)
	c.bool(s.CancelAtPeriodEnd)
	c.instant(s.CanceledAt)
	c.text(string(s.Duration))
	c.number(s.OrderID)
	c.bool(s.RenewsItself())
	c.amount(s.Price, digits)
	c.text(v.Formatted(s.Price, s.Currency))
	c.text(s.Currency)
	c.number(s.Product.ID)
	c.text(s.Product.Name.In(v.Language))
	c.text(s.Product.Slug)
	c.text(s.Product.Type)
	c.variant(v, &s.Variant)
	if card := s.PaymentMethod(); card != nil {
		c.text(card.LastFour)
		c.text(card.Scheme)
	} else {
		c.empty(2)
	}
	c.cell(string(s.Metadata))
	c.empty(1) // features
	c.bool(s.GrantsAccess(v.now))
	c.bool(s.HasExpired(v.now))
	c.number(int64(s.DaysRemaining(v.now)))
	c.instant(s.CreatedAt)
	c.instant(s.UpdatedAt)
	if s.Scheduled != nil {
		c.variant(v, s.Scheduled)
	} else {
		c.empty(4)
	}
	switch s.Status {
	case Paused:
		c.instant(s.PausedAt)
		c.number(int64(s.PausedRemainingDays))
	case PastDue:
		c.empty(2)
		c.instant(s.NextRetryAt)
	}
	c.end()
}

func (c *csvLines) deleted(_ *view, d Deletion) {
	c.text("deleted")
	c.empty(1)
	c.number(d.ID)
	c.empty(len(csvColumns) - 4) // deleted_at is the last column
	c.instant(d.At)
	c.end()
}

func (c *csvLines) next(cursor string) {
	c.text("next")
	c.text(cursor)
	c.end()
}

func (c *csvLines) variant(v *view, variant *Variant) {
	c.number(variant.ID)
	c.text(string(variant.Duration))
	c.text(variant.Duration.Label(v.Language))
	c.amount(variant.Price, v.storeDigits)
}

// begin begins a cell.
func (c *csvLines) begin() {
	if c.cells > 0 {
		c.lines = append(c.lines, ',')
	}
	c.cells++
}

func (c *csvLines) empty(n int) {
	for range n {
		c.begin()
	}
}

func (c *csvLines) number(n int64) {
	c.begin()
	c.lines = strconv.AppendInt(c.lines, n, 10)
}

func (c *csvLines) bool(b bool) {
	c.begin()
	c.lines = strconv.AppendBool(c.lines, b)
}

func (c *csvLines) amount(a money.Amount, digits int) {
	c.begin()
	c.lines = money.AppendMajor(c.lines, a, digits)
}

func (c *csvLines) date(f dateForm, t time.Time) {
	c.begin()
	c.lines = f.append(c.lines, t)
}

// instant writes an empty cell for the zero time.
func (c *csvLines) instant(t time.Time) {
	if t.IsZero() {
		c.empty(1)
		return
	}
	c.date(instants, t)
}

// text writes a text so that no spreadsheet takes it for a formula. Invalid UTF-8 is replaced by
// U+FFFD, as in JSON.
func (c *csvLines) text(text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0 {
		text = "'" + text
	}
	c.cell(text)
}

func (c *csvLines) cell(text string) {
	c.begin()
	if strings.ContainsAny(text, "\",\r\n") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	c.lines = append(c.lines, text...)
}

// end ends the line, with empty cells for the columns that it does not have.
func (c *csvLines) end() {
	c.empty(len(csvColumns) - c.cells)
	c.lines = append(c.lines, "\r\n"...)
	c.cells = 0
}
