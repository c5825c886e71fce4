package wire

import (
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/go-faster/jx"

	"commerce/auth/locale"
	"commerce/cart/money"
)

// Writer writes the JSON of one answer, member by member: an encoder that looks at
// types costs more than Redis or Postgres do.
type Writer struct {
	Language locale.Locale

	json   jx.Encoder
	prices *money.Formatter
	start  int // of what the ETag covers
	end    int // of it; 0 where it covers everything
}

// NewWriter returns a writer that appends to a buffer.
func NewWriter(buffer []byte, l locale.Locale, prices *money.Formatter) *Writer {
	w := &Writer{Language: l, prices: prices, start: len(buffer)}
	w.json.SetBytes(buffer)
	return w
}

// Bytes is what was written so far, with the buffer's content before it.
func (w *Writer) Bytes() []byte { return w.json.Bytes() }

// BeginObject begins an object that is an element of an array, or the data itself.
func (w *Writer) BeginObject() { w.json.ObjStart() }

// EndObject ends an object.
func (w *Writer) EndObject() { w.json.ObjEnd() }

// Object begins an object that is a member.
func (w *Writer) Object(name string) {
	w.json.FieldStart(name)
	w.json.ObjStart()
}

// Array begins an array that is a member.
func (w *Writer) Array(name string) {
	w.json.FieldStart(name)
	w.json.ArrStart()
}

// EndArray ends an array.
func (w *Writer) EndArray() { w.json.ArrEnd() }

// Element writes a text that is an element of an array.
func (w *Writer) Element(text string) { w.json.Str(text) }

// Null writes a member that is null.
func (w *Writer) Null(name string) {
	w.json.FieldStart(name)
	w.json.Null()
}

// Text writes a member that is text. Bytes that are not UTF-8 are replaced.
func (w *Writer) Text(name, value string) {
	w.json.FieldStart(name)
	w.json.Str(value)
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
	w.json.FieldStart(name)
	w.json.Bool(value)
}

// Number writes a whole number.
func (w *Writer) Number(name string, n int64) {
	w.json.FieldStart(name)
	w.json.Int64(n)
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
	var b [24]byte
	w.json.FieldStart(name)
	w.json.Raw(money.AppendMajor(b[:0], a, digits))
}

// Percent writes parts per million as percent.
func (w *Writer) Percent(name string, rate int64) { w.Amount(name, money.Amount(rate), 4) }

// Price writes money as a person reads it.
func (w *Writer) Price(name string, a money.Amount, currency string) {
	w.Text(name, w.prices.Format(a, currency, w.Language))
}

// JSON writes a member that is JSON already.
func (w *Writer) JSON(name string, value []byte) {
	w.json.FieldStart(name)
	w.json.Raw(value)
}

// EndOfView ends what the ETag covers: what is written after it may change without
// another ETag.
func (w *Writer) EndOfView() { w.end = len(w.json.Bytes()) }

// ETag names what was written, without quotes: version, "-", and a digest of the
// language and of all that a client sees up to EndOfView.
func (w *Writer) ETag(version string) string {
	view := w.json.Bytes()[w.start:]
	if w.end > 0 {
		view = w.json.Bytes()[w.start:w.end]
	}
	var d xxhash.Digest
	d.Reset()
	_, _ = d.WriteString(string(w.Language))
	_, _ = d.Write(view)
	return version + "-" + strconv.FormatUint(d.Sum64(), 36)
}
