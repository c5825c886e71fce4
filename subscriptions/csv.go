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
// the same values. The JSON has its members in the order of the columns, so a line is written
// from left to right.
type csvLines struct {
	w       *wire.Writer // for the JSON of one row
	lines   []byte
	begun   bool        // the header is written
	columns []csvColumn // all
	at      int         // the current column
	text    []byte      // of a cell that had escapes
}

// csvColumn is a member, and the object that has it, "" for a subscription itself.
type csvColumn struct{ object, member string }

// newCSV leaves out the header if begun is true.
func newCSV(w *wire.Writer, begun bool) *csvLines {
	c := &csvLines{w: w, begun: begun, columns: make([]csvColumn, len(csvColumns))}
	for i, name := range csvColumns {
		object, member, nested := strings.Cut(name, ".")
		if !nested {
			object, member = "", name
		}
		c.columns[i] = csvColumn{object, member}
	}
	return c
}

func (c *csvLines) reset() {
	c.lines = c.lines[:0]
	if !c.begun {
		c.lines = append(append(c.lines, strings.Join(csvColumns, ",")...), "\r\n"...)
		c.begun = true
	}
}

func (c *csvLines) bytes() []byte { return c.lines }

func (c *csvLines) changed(v *view, s *Subscription, digits int) error {
	c.w.Reset(c.w.Language)
	v.full(s, digits)
	c.cell(nil, []byte("kind"), []byte("row"))
	if _, err := c.members(nil, c.w.Bytes()); err != nil {
		return err
	}
	c.end()
	return nil
}

func (c *csvLines) deleted(_ *view, d Deletion) {
	c.cell(nil, []byte("kind"), []byte("deleted"))
	c.cell(nil, []byte("id"), strconv.AppendInt(nil, d.ID, 10))
	c.cell(nil, []byte("deleted_at"), instants.append(nil, d.At))
	c.end()
}

func (c *csvLines) next(cursor string) {
	c.cell(nil, []byte("kind"), []byte("next"))
	c.cell(nil, []byte("cursor"), []byte(cursor))
	c.end()
}

// members writes the cells of an object's members, and returns what is after them. The JSON is
// that of a wire.Writer, which has no spaces between members and no escapes in names. null is
// an empty cell.
func (c *csvLines) members(object, json []byte) (rest []byte, err error) {
	for json[0] != '}' {
		json = json[len(`{"`):] // or a comma
		name := json[:bytes.IndexByte(json, '"')]
		json = json[len(name)+len(`":`):]
		if json[0] == '{' && string(name) != "metadata" {
			if json, err = c.members(name, json); err != nil {
				return nil, err
			}
			continue
		}
		value := json[:valueEnd(json)]
		json = json[len(value):]
		if err := c.value(object, name, value); err != nil {
			return nil, err
		}
	}
	return json[1:], nil
}

// valueEnd returns the length of the member's value that the JSON begins with.
func valueEnd(json []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch json[i] {
		case '"':
			for i++; json[i] != '"'; i++ {
				if json[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return i
			}
			if json[i] != ',' {
				depth--
			}
		}
	}
}

// value writes the cell of a member's JSON.
func (c *csvLines) value(object, name, json []byte) (err error) {
	switch {
	case json[0] == 'n':
		return nil
	case json[0] != '"':
	case bytes.IndexByte(json, '\\') >= 0:
		c.text, err = jsontext.AppendUnquote(c.text[:0], json)
		json = escapeFormula(c.text)
	default:
		json = escapeFormula(json[1 : len(json)-1])
	}
	c.cell(object, name, json)
	return err
}

// escapeFormula returns a text that no spreadsheet takes for a formula.
func escapeFormula(text []byte) []byte {
	if len(text) > 0 && strings.IndexByte("=+-@\t\r", text[0]) >= 0 {
		return append([]byte{'\''}, text...)
	}
	return text
}

// cell writes a cell, and empty ones for the columns before it.
func (c *csvLines) cell(object, member, text []byte) {
	for c.columns[c.at].object != string(object) || c.columns[c.at].member != string(member) {
		c.lines = append(c.lines, ',')
		if c.at++; c.at == len(c.columns) {
			panic(fmt.Sprintf("subscriptions: no CSV column for %s.%s, or not in this place", object, member))
		}
	}
	if bytes.ContainsAny(text, "\",\r\n") {
		text = fmt.Appendf(nil, `"%s"`, bytes.ReplaceAll(text, []byte{'"'}, []byte(`""`)))
	}
	c.lines = append(c.lines, text...)
}

// end ends the line. Line breaks inside of cells stay as they are; encoding/csv would
// change them.
func (c *csvLines) end() {
	for ; c.at < len(c.columns)-1; c.at++ {
		c.lines = append(c.lines, ',')
	}
	c.lines = append(c.lines, "\r\n"...)
	c.at = 0
}
