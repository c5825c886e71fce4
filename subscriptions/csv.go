package subscriptions

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"commerce/cart/wire"
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

// csvLines writes RFC 4180. The cells of a row come from its JSON, so that both formats have
// the same values.
type csvLines struct {
	w       *wire.Writer // for the JSON of one row
	lines   []byte
	begun   bool // the header is written
	columns map[string]int
	cells   []string // of the current line
}

func newCSV(w *wire.Writer) *csvLines {
	c := &csvLines{w: w, columns: make(map[string]int, len(csvColumns)), cells: make([]string, len(csvColumns))}
	for i, name := range csvColumns {
		c.columns[name] = i
	}
	return c
}

func (c *csvLines) reset() {
	c.lines = c.lines[:0]
	if !c.begun {
		copy(c.cells, csvColumns)
		c.end()
		c.begun = true
	}
}

func (c *csvLines) bytes() []byte { return c.lines }

func (c *csvLines) changed(v *view, s *Subscription, digits int) error {
	c.w.Reset(c.w.Language)
	v.full(s, digits)
	c.set("kind", "row")
	if err := c.object("", jsontext.NewDecoder(bytes.NewReader(c.w.Bytes()))); err != nil {
		return err
	}
	c.end()
	return nil
}

func (c *csvLines) deleted(_ *view, d Deletion) {
	c.set("kind", "deleted")
	c.set("id", strconv.FormatInt(d.ID, 10))
	c.set("deleted_at", string(instants.append(nil, d.At)))
	c.end()
}

func (c *csvLines) next(cursor string) {
	c.set("kind", "next")
	c.set("cursor", cursor)
	c.end()
}

// object sets the cells of an object's members. null is an empty cell.
func (c *csvLines) object(prefix string, d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := c.member(prefix+name.String(), d); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (c *csvLines) member(column string, d *jsontext.Decoder) error {
	kind := d.PeekKind()
	if kind == '{' && column != "metadata" {
		return c.object(column+".", d)
	}
	value, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case kind == 'n':
		return nil
	case kind == '"':
		text, err := jsontext.AppendUnquote(nil, value)
		c.set(column, harmless(string(text)))
		return err
	}
	c.set(column, string(value))
	return nil
}

func (c *csvLines) set(column, cell string) {
	at, ok := c.columns[column]
	if !ok {
		panic(fmt.Sprintf("subscriptions: no CSV column %s", column))
	}
	c.cells[at] = cell
}

// harmless returns a text that no spreadsheet takes for a formula.
func harmless(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

// end writes the current line. Line breaks inside of cells stay as they are, which
// encoding/csv would change.
func (c *csvLines) end() {
	for i, cell := range c.cells {
		if i > 0 {
			c.lines = append(c.lines, ',')
		}
		if strings.ContainsAny(cell, "\",\r\n") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		c.lines = append(c.lines, cell...)
	}
	c.lines = append(c.lines, '\r', '\n')
	clear(c.cells)
}
