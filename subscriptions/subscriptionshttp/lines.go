package subscriptionshttp

import (
	"strconv"
	"strings"
	"time"

	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/subscriptions"
)

// lines writes the lines of a page of a stream, with the same members in each format.
type lines interface {
	members
	begin(kind string)                // begins the line of a subscription or of a deletion
	end()                             // ends it
	next(cursor string) (page []byte) // ends the page
}

// newLines returns the lines of a request. w must be empty.
func newLines(r *changesRequest, w *wire.Writer) lines {
	switch {
	case r.plain:
		return plainCSV{newCSV(csvColumns[2:])}
	case r.format == asCSV:
		return newCSV(csvColumns)
	}
	return ndjson{w}
}

// writeLines returns the lines of a page. They are valid until the next page.
func writeLines(to lines, v *view, c *subscriptions.Changes, store int64) []byte {
	for _, d := range c.Deleted {
		to.begin("deleted")
		v.deletion(d)
		to.end()
	}
	for i := range c.Changed {
		to.begin("subscription")
		v.full(&c.Changed[i])
		to.end()
	}
	return to.next(c.Next.Text(store))
}

// ndjson writes each line as a JSON object with one member.
type ndjson struct{ *wire.Writer }

func (n ndjson) begin(kind string) {
	n.BeginObject()
	n.Object(kind)
}

func (n ndjson) end() {
	n.EndObject()
	n.EndObject()
	n.EndLine()
}

func (n ndjson) next(cursor string) []byte {
	n.BeginObject()
	n.Text("next", cursor)
	n.EndObject()
	n.EndLine()
	defer n.Reset(n.Language)
	return n.Bytes()
}

// csvColumns are the columns of changes in CSV: the kind of the line (row, deleted or next), the cursor
// of a next, and the members of a single subscription in their order, nested ones with a dot.
var csvColumns = []string{
	"kind", "cursor", "id", "status", "external_customer_id", "starts_at", "ends_at", "start_date", "end_date",
	"current_period_start", "current_period_end", "trial_ends_at", "cancel_at_period_end", "canceled_at",
	"duration", "order_id", "auto_renew", "price.amount", "price.formatted", "price.currency",
	"product.id", "product.name", "product.slug", "product.type",
	"variant.id", "variant.duration", "variant.duration_text", "variant.price",
	"payment_method.last_four", "payment_method.scheme", "metadata", "features",
	"is_active", "is_expired", "days_remaining", "grace_ends_at", "created_at", "updated_at",
	"scheduled_variant.id", "scheduled_variant.duration", "scheduled_variant.duration_text", "scheduled_variant.price",
	"paused_at", "paused_remaining_days", "next_retry_at", "deleted_at",
}

// csv writes RFC 4180, with a header. The cells have the values of NDJSON, and null is an empty cell. Line breaks
// inside of cells stay as they are, which encoding/csv would change.
type csv struct {
	columns []string
	lines   []byte // of the current page; the first one has the header
	cells   int    // of the current line
	of      string // the object that is written, with a dot; "" for none
}

func newCSV(columns []string) *csv {
	return &csv{columns: columns, lines: []byte(strings.Join(columns, ",") + "\r\n")}
}

func (c *csv) begin(kind string) {
	if kind == "subscription" {
		kind = "row"
	}
	c.Text("kind", kind)
}

func (c *csv) next(cursor string) []byte {
	c.Text("kind", "next")
	c.Text("cursor", cursor)
	c.end()
	return c.page()
}

// page returns the lines since the page before.
func (c *csv) page() []byte {
	page := c.lines
	c.lines = c.lines[:0]
	return page
}

// plainCSV has only rows, without the columns kind and cursor.
type plainCSV struct{ *csv }

func (p plainCSV) begin(string)       {}
func (p plainCSV) next(string) []byte { return p.page() }

// end ends the line, with empty cells for the columns that it does not have.
func (c *csv) end() {
	c.lines = append(c.lines, strings.Repeat(",", len(c.columns)-c.cells)...)
	c.lines = append(c.lines, "\r\n"...)
	c.cells = 0
}

func (c *csv) Object(name string) { c.of = name + "." }
func (c *csv) EndObject()         { c.of = "" }

// Null writes no cell: the next one comes after empty ones.
func (c *csv) Null(string) {}

// raw writes the cell of a member, after empty ones for the columns between.
func (c *csv) raw(name, text string) {
	for found := false; !found; c.cells++ {
		if c.cells > 0 {
			c.lines = append(c.lines, ',')
		}
		found = c.columns[c.cells] == c.of+name
	}
	c.lines = append(c.lines, text...)
}

func (c *csv) Number(name string, n int64) { c.raw(name, strconv.FormatInt(n, 10)) }

func (c *csv) Bool(name string, value bool) { c.raw(name, strconv.FormatBool(value)) }

func (c *csv) Amount(name string, a money.Amount, digits int) {
	c.raw(name, string(money.AppendMajor(nil, a, digits)))
}

// Text writes a text so that no spreadsheet takes it, or a part of it, for a formula. Invalid UTF-8
// is replaced by U+FFFD, as in JSON.
func (c *csv) Text(name, value string) {
	c.quoted(name, withoutFormulas(strings.ToValidUTF8(value, "\uFFFD")))
}

// withoutFormulas returns a text with a ' in front of each character that would begin a formula: at
// its beginning, and after a semicolon or line feed, where some spreadsheets begin a cell.
func withoutFormulas(text string) string {
	var done string
	rest, begins := 0, true
	for i, r := range text {
		if begins && strings.ContainsRune("=+-@\t\r\n＝＋－＠", r) {
			done, rest = done+text[rest:i]+"'", i
		}
		begins = r == ';' || r == '\n' || begins && r == '"' // which a cell may have around it
	}
	return done + text[rest:]
}

// escapesFormulas does the same in JSON, without another value.
var escapesFormulas = strings.NewReplacer(";=", `;\u003d`, ";+", `;\u002b`, ";-", `;\u002d`, ";@", `;\u0040`,
	";＝", `;\uff1d`, ";＋", `;\uff0b`, ";－", `;\uff0d`, ";＠", `;\uff20`)

func (c *csv) Time(name string, t time.Time, layout string) { c.quoted(name, t.UTC().Format(layout)) }

func (c *csv) Optional(name, value string) { c.Text(name, value) }

func (c *csv) JSON(name string, value []byte) {
	c.quoted(name, escapesFormulas.Replace(string(value)))
}

func (c *csv) quoted(name, text string) {
	if strings.ContainsAny(text, "\",\r\n") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	c.raw(name, text)
}
