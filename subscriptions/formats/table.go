package formats

import (
	"strconv"
	"strings"
	"time"

	"commerce/cart/money"
)

// Table writes RFC 4180, with a header. The cells have the values of NDJSON, and null is an empty cell. Line breaks
// inside of cells stay as they are, which encoding/csv would change.
type Table struct {
	columns []string
	lines   []byte // of the current page; the first one has the header
	cells   int    // of the current line
	of      string // the object that is written, with a dot; "" for none
}

// NewTable returns a table with a header of the columns. A nested member has a dot in its column.
func NewTable(columns []string) *Table {
	return &Table{columns: columns, lines: []byte(strings.Join(columns, ",") + "\r\n")}
}

// Page returns the lines since the page before. They are valid until the next line is written.
func (c *Table) Page() []byte {
	page := c.lines
	c.lines = c.lines[:0]
	return page
}

// End ends the line, with empty cells for the columns that it does not have.
func (c *Table) End() {
	c.lines = append(c.lines, strings.Repeat(",", len(c.columns)-c.cells)...)
	c.lines = append(c.lines, "\r\n"...)
	c.cells = 0
}

func (c *Table) Object(name string) { c.of = name + "." }
func (c *Table) EndObject()         { c.of = "" }

// Null writes no cell: the next one comes after empty ones.
func (c *Table) Null(string) {}

// raw writes the cell of a member, after empty ones for the columns between.
func (c *Table) raw(name, text string) {
	for found := false; !found; c.cells++ {
		if c.cells > 0 {
			c.lines = append(c.lines, ',')
		}
		found = c.columns[c.cells] == c.of+name
	}
	c.lines = append(c.lines, text...)
}

func (c *Table) Number(name string, n int64) { c.raw(name, strconv.FormatInt(n, 10)) }

func (c *Table) Bool(name string, value bool) { c.raw(name, strconv.FormatBool(value)) }

func (c *Table) Amount(name string, a money.Amount, digits int) {
	c.raw(name, string(money.AppendMajor(nil, a, digits)))
}

// Text writes a text so that no spreadsheet takes it, or a part of it, for a formula. Invalid UTF-8
// is replaced by U+FFFD, as in JSON.
func (c *Table) Text(name, value string) {
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

func (c *Table) Time(name string, t time.Time, layout string) { c.quoted(name, t.UTC().Format(layout)) }

func (c *Table) Optional(name, value string) { c.Text(name, value) }

func (c *Table) JSON(name string, value []byte) {
	c.quoted(name, escapesFormulas.Replace(string(value)))
}

func (c *Table) quoted(name, text string) {
	if strings.ContainsAny(text, "\",\r\n") {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	c.raw(name, text)
}
