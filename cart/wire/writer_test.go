package wire

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

func TestWriter_SeparatesWhatItWrites(t *testing.T) {
	t.Parallel()
	n := int64(7)
	w := NewWriter(nil, locale.En, money.NewFormatter())
	w.BeginObject()
	w.Null("null")
	w.Object("empty")
	w.EndObject()
	w.Array("array")
	w.Element("a")
	w.Element("b")
	w.BeginObject()
	w.Bool("yes", true)
	w.EndObject()
	w.BeginObject()
	w.EndObject()
	w.EndArray()
	w.Array("none")
	w.EndArray()
	w.Number("number", -1)
	w.NullableNumber("nullable", &n)
	w.NullableNumber("nullable_not", nil)
	w.Optional("optional", "")
	w.Amount("amount", 4950, 2)
	w.Percent("percent", 150_000)
	w.Price("price", 4950, "USD")
	w.Time("time", time.Date(2026, 3, 1, 2, 0, 0, 999_999_999, time.FixedZone("", 3*60*60)), RFC3339)
	w.JSON("json", []byte(`{"k": [1]}`))
	w.Member("member")
	w.BeginObject()
	w.Text("text", "t")
	w.EndObject()
	w.EndObject()
	const want = `{"null":null,"empty":{},"array":["a","b",{"yes":true},{}],"none":[],"number":-1,"nullable":7,` +
		`"nullable_not":null,"optional":null,"amount":49.5,"percent":15,"price":"$49.50","time":"2026-02-28T23:00:00Z","json":{"k": [1]},` +
		`"member":{"text":"t"}}`
	got := string(w.Bytes())
	assert.That(t, got == want && json.Valid(w.Bytes()), "got  %s\nwant %s", got, want)
}

func TestWriter_EscapesText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                `""`,
		"plain ~":         `"plain ~"`,
		`a"b\c`:           `"a\"b\\c"`,
		"a\nb\tc\x00\x7f": `"a\nb\tc\u0000` + "\x7f" + `"`,
		"<a>&":            `"<a>&"`,
		"رمضان":           `"رمضان"`,
		"a\xffb":          `"a` + "\uFFFD" + `b"`,
		"ends with {":     `"ends with {"`,
	} {
		w := NewWriter(nil, locale.En, nil)
		w.BeginObject()
		w.Text("a", text)
		w.Null("b")
		w.EndObject()
		got := string(w.Bytes())
		assert.That(t, got == `{"a":`+want+`,"b":null}` && json.Valid(w.Bytes()), "%q: got %s, want %s", text, got, want)
	}
}

func TestETag_CoversTheLanguageAndTheView(t *testing.T) {
	t.Parallel()
	w := NewWriter(nil, locale.En, nil)
	tag := func(l locale.Locale, before, view, after string) string {
		w.Reset(l)
		w.BeginObject()
		w.Text("before", before)
		w.Member("data")
		w.BeginView()
		w.BeginObject()
		w.Text("view", view)
		since := len(w.Bytes())
		w.Text("left out", after+before)
		w.LeaveOut(since)
		w.Text("more", view)
		w.EndOfView()
		w.Text("after", after)
		w.EndObject()
		return w.ETag("7.1")
	}
	base := tag(locale.En, "a", "b", "c")
	assert.That(t, strings.HasPrefix(base, `"7.1-`), "got %s, want the version first", base)
	assert.That(t, tag(locale.En, "x", "b", "c") == base && tag(locale.En, "a", "b", "x") == base,
		"the ETag changes with what is outside the view")
	assert.That(t, tag(locale.Ar, "a", "b", "c") != base && tag(locale.En, "a", "x", "c") != base,
		"the ETag does not change with the language or the view")
}

func TestTime_IsAsTimeFormatsIt(t *testing.T) {
	t.Parallel()
	earliest := time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	latest := time.Date(10_001, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for range 10_000 {
		at := time.Unix(earliest+rand.Int64N(latest-earliest), rand.Int64N(1e9)).UTC()
		for _, layout := range []string{"2006-01-02", "2006-01-02 15:04:05", RFC3339, "2006-01-02T15:04:05.000000Z"} {
			assert.Equal(t, string(appendTime([]byte("x"), at, layout)), "x"+at.Format(layout), "layout %s", layout)
		}
	}
}
