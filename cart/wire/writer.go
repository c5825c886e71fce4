package wire

import (
	"cmp"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/money"
)

// Writer writes the JSON of one response, member by member: an encoder that uses reflection costs
// more CPU than Redis or Postgres do. Member names must not need escapes.
type Writer struct {
	Language locale.Locale

	json   []byte
	prices *money.Formatter

	digest   xxhash.Digest // of the language, and of what the ETag covers before digested
	digested int           // a position in json
	end      int           // where the bytes that the ETag covers end; 0 if it covers everything
}

// NewWriter returns a writer that appends to a buffer. Its ETag covers what is appended.
func NewWriter(buffer []byte, l locale.Locale, prices *money.Formatter) *Writer {
	w := &Writer{json: buffer, prices: prices}
	w.begin(l)
	return w
}

// Reset makes w a new writer for l, which overwrites what Bytes has returned.
func (w *Writer) Reset(l locale.Locale) {
	w.json, w.end = w.json[:0], 0
	w.begin(l)
}

func (w *Writer) begin(l locale.Locale) {
	w.Language = l
	w.BeginView()
}

// Bytes returns the buffer's initial content and what was written so far.
func (w *Writer) Bytes() []byte { return w.json }

// separate writes the comma before an element or member that is not the first.
func (w *Writer) separate() {
	if len(w.json) == 0 {
		return
	}
	switch w.json[len(w.json)-1] {
	case '{', '[', ':', '\n':
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

func (w *Writer) EndObject() { w.json = append(w.json, '}') }

// EndLine ends a line of several JSON values.
func (w *Writer) EndLine() { w.json = append(w.json, '\n') }

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

func (w *Writer) EndArray() { w.json = append(w.json, ']') }

// Element writes a text that is an element of an array, or null for "".
func (w *Writer) Element(text string) {
	w.separate()
	if text == "" {
		w.json = append(w.json, "null"...)
		return
	}
	w.quote(text)
}

func (w *Writer) Null(name string) {
	w.Member(name)
	w.json = append(w.json, "null"...)
}

// Text writes a member that is a string. Invalid UTF-8 is replaced by U+FFFD.
func (w *Writer) Text(name, value string) {
	w.Member(name)
	w.quote(value)
}

// quote writes a string, with escapes only if it needs any: most do not.
func (w *Writer) quote(text string) {
	for i := range len(text) {
		if b := text[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			w.json, _ = jsontext.AppendQuote(w.json, text) // an error only reports replaced bytes
			return
		}
	}
	w.json = append(w.json, '"')
	w.json = append(w.json, text...)
	w.json = append(w.json, '"')
}

// RFC3339 is the layout of a moment in whole seconds.
const RFC3339 = "2006-01-02T15:04:05Z"

// Time writes a moment in UTC by time.DateOnly, time.DateTime or RFC3339, maybe with microseconds.
func (w *Writer) Time(name string, t time.Time, layout string) {
	w.Member(name)
	w.json = append(w.json, '"')
	w.json = appendTime(w.json, t.UTC(), layout)
	w.json = append(w.json, '"')
}

// appendTime is AppendFormat for the layouts of Time. AppendFormat is fast for time.RFC3339 alone, and a
// page of subscriptions has more than a hundred dates.
func appendTime(b []byte, t time.Time, layout string) []byte {
	b = t.AppendFormat(b, time.RFC3339)
	day, end := len(b)-len("T15:04:05Z"), len(b)-len("Z")
	switch {
	case len(layout) == len(time.DateOnly):
		return b[:day]
	case len(layout) == len(time.DateTime):
		b[day] = ' '
		return b[:end]
	case len(layout) > len(RFC3339):
		b = append(strconv.AppendInt(b[:end], int64(1_000_000+t.Nanosecond()/1000), 10), 'Z')
		b[end] = '.'
	}
	return b
}

// Optional writes text, or null for "".
func (w *Writer) Optional(name, value string) {
	if value == "" {
		w.Null(name)
		return
	}
	w.Text(name, value)
}

// Problem writes the members of an error that are about what is wrong.
func (w *Writer) Problem(e *problem.Error) {
	w.Text("message", e.Message(w.Language))
	w.Text("code", string(e.Code))
	// The names may be the caller's. Text always marshals.
	members, _ := json.Marshal(e.Members(w.Language),
		json.Deterministic(true), json.FormatNilMapAsNull(true), jsontext.AllowInvalidUTF8(true))
	w.JSON("errors", members)
}

func (w *Writer) Bool(name string, value bool) {
	w.Member(name)
	w.json = strconv.AppendBool(w.json, value)
}

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

// Amount writes money as an exact number in major units; digits is how many decimals its
// currency has.
func (w *Writer) Amount(name string, a money.Amount, digits int) {
	w.Member(name)
	w.json = money.AppendMajor(w.json, a, digits)
}

// Percent writes a rate, given in parts per million, as a percentage.
func (w *Writer) Percent(name string, rate int64) { w.Amount(name, money.Amount(rate), 4) }

// Price writes money as text for a person, in the writer's language.
func (w *Writer) Price(name string, a money.Amount, currency string) {
	w.Text(name, w.Formatted(a, currency))
}

// Formatted returns money as text for a person, in the writer's language.
func (w *Writer) Formatted(a money.Amount, currency string) string {
	return w.prices.Format(a, currency, w.Language)
}

// JSON writes a member whose value is already JSON.
func (w *Writer) JSON(name string, value []byte) {
	w.Member(name)
	w.json = append(w.json, value...)
}

// Value writes a value that is already JSON: an element of an array, or the whole response.
func (w *Writer) Value(json []byte) {
	w.separate()
	w.json = append(w.json, json...)
}

// BeginView makes the ETag cover only what is written from here on.
func (w *Writer) BeginView() {
	w.digest.Reset()
	_, _ = w.digest.WriteString(string(w.Language))
	w.digested = len(w.json)
}

// EndOfView ends what the ETag covers: what is written later does not change the ETag.
func (w *Writer) EndOfView() { w.end = len(w.json) }

// LeaveOut makes the ETag not cover what was written since Bytes had this length.
func (w *Writer) LeaveOut(since int) {
	w.cover(since)
	w.digested = len(w.json)
}

// cover makes the ETag cover what was written before a position.
func (w *Writer) cover(end int) {
	_, _ = w.digest.Write(w.json[w.digested:end])
	w.digested = end
}

// sum returns the digest of the language and of what the ETag covers.
func (w *Writer) sum() uint64 {
	w.cover(cmp.Or(w.end, len(w.json)))
	return w.digest.Sum64()
}

// ETag returns the value of an ETag header, in quotes: version, "-", and a digest of the
// language and of what was written between BeginView and EndOfView, except what is left out.
func (w *Writer) ETag(version string) string {
	var room [64]byte // enough for most versions, so that only the result is allocated
	tag := append(append(append(room[:0], '"'), version...), '-')
	return string(append(strconv.AppendUint(tag, w.sum(), 36), '"'))
}
