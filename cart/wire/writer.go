package wire

import (
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/cart/money"
)

// Writer writes the JSON of one answer, member by member: an encoder that looks at
// types costs more than Redis or Postgres do. Names of members are written as they are,
// so they must not need escapes.
type Writer struct {
	Language locale.Locale

	json   []byte
	prices *money.Formatter
	start  int // of what the ETag covers
	end    int // of it; 0 if it covers everything
}

// NewWriter returns a writer that appends to a buffer. Its ETag covers what is written
// from here on.
func NewWriter(buffer []byte, l locale.Locale, prices *money.Formatter) *Writer {
	return &Writer{Language: l, json: buffer, prices: prices, start: len(buffer)}
}

// Bytes is what was written so far, with the buffer's content before it.
func (w *Writer) Bytes() []byte { return w.json }

// separate writes the comma before an element or a member that is not the first.
func (w *Writer) separate() {
	if len(w.json) == 0 {
		return
	}
	switch w.json[len(w.json)-1] {
	case '{', '[', ':':
	default:
		w.json = append(w.json, ',')
	}
}

// Member begins a member. The next call writes its value.
func (w *Writer) Member(name string) {
	w.separate()
	w.json = append(w.json, '"')
	w.json = append(w.json, name...)
	w.json = append(w.json, '"', ':')
}

// BeginObject begins an object that is an element of an array, or the data itself.
func (w *Writer) BeginObject() {
	w.separate()
	w.json = append(w.json, '{')
}

// EndObject ends an object.
func (w *Writer) EndObject() { w.json = append(w.json, '}') }

// Object begins an object that is a member.
func (w *Writer) Object(name string) {
	w.Member(name)
	w.json = append(w.json, '{')
}

// Array begins an array that is a member.
func (w *Writer) Array(name string) {
	w.Member(name)
	w.json = append(w.json, '[')
}

// EndArray ends an array.
func (w *Writer) EndArray() { w.json = append(w.json, ']') }

// Element writes a text that is an element of an array.
func (w *Writer) Element(text string) {
	w.separate()
	w.quote(text)
}

// Null writes a member that is null.
func (w *Writer) Null(name string) {
	w.Member(name)
	w.json = append(w.json, "null"...)
}

// Text writes a member that is text. Bytes that are not UTF-8 are replaced.
func (w *Writer) Text(name, value string) {
	w.Member(name)
	w.quote(value)
}

// quote writes a text with the escapes that it needs. Most texts need none.
func (w *Writer) quote(text string) {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			w.json, _ = jsontext.AppendQuote(w.json, text) // its error is about what it replaced
			return
		}
	}
	w.json = append(w.json, '"')
	w.json = append(w.json, text...)
	w.json = append(w.json, '"')
}

// Optional writes text, or null for "".
func (w *Writer) Optional(name, value string) {
	if value == "" {
		w.Null(name)
		return
	}
	w.Text(name, value)
}

// Bool writes a member that is true or false.
func (w *Writer) Bool(name string, value bool) {
	w.Member(name)
	w.json = strconv.AppendBool(w.json, value)
}

// Number writes a whole number.
func (w *Writer) Number(name string, n int64) {
	w.Member(name)
	w.json = strconv.AppendInt(w.json, n, 10)
}

// NullableNumber writes a whole number, or null for nil.
func (w *Writer) NullableNumber(name string, n *int64) {
	if n == nil {
		w.Null(name)
		return
	}
	w.Number(name, *n)
}

// Amount writes money as a number in major units, exact to its decimals.
func (w *Writer) Amount(name string, a money.Amount, digits int) {
	w.Member(name)
	w.json = money.AppendMajor(w.json, a, digits)
}

// Percent writes parts per million as percent.
func (w *Writer) Percent(name string, rate int64) { w.Amount(name, money.Amount(rate), 4) }

// Price writes money as a person reads it.
func (w *Writer) Price(name string, a money.Amount, currency string) {
	w.Text(name, w.prices.Format(a, currency, w.Language))
}

// JSON writes a member that is JSON already.
func (w *Writer) JSON(name string, value []byte) {
	w.Member(name)
	w.json = append(w.json, value...)
}

// Append writes a member whose value is the JSON that write appends.
func (w *Writer) Append(name string, write func([]byte) []byte) {
	w.Member(name)
	w.json = write(w.json)
}

// BeginView begins what the ETag covers, after what the writer has written before.
func (w *Writer) BeginView() { w.start = len(w.json) }

// EndOfView ends what the ETag covers: what is written after it may change without
// another ETag.
func (w *Writer) EndOfView() { w.end = len(w.json) }

// ETag names what was written, without quotes: version, "-", and a digest of the
// language and of all that a client sees up to EndOfView.
func (w *Writer) ETag(version string) string {
	view := w.json[w.start:]
	if w.end > 0 {
		view = w.json[w.start:w.end]
	}
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString(string(w.Language))
	_, _ = d.Write(view)
	return version + "-" + strconv.FormatUint(d.Sum64(), 36)
}
