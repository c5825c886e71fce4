package cart

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestNormalText(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                                "",
		"a@example.com":                   "a@example.com",
		" \t\r\n a \u00a0\u3000":          "a",
		"a  b\nc":                         "a  b\nc",
		"cafe\u0301":                      "café", // NFD
		"caf\u00e9":                       "café",
		"\u0622\u0645\u0627\u0644":        "آمال",
		"\u0627\u0653\u0645\u0627\u0644":  "آمال",
		" ":                               "",
		"\u200b":                          "", // zero width space
		"\u200f\u200e\ufeff":              "", // direction marks, byte order mark
		"\u202a \u202c":                   "",
		"\u00ad\u2060\u2064":              "", // soft hyphen, word joiner, invisible plus
		"\u3164\u115f\ufe0f\u034f":        "", // fillers, variation selector, grapheme joiner
		"\x00\x1b\x7f\u0085":              "",
		"\u200bx":                         "\u200bx",
		"\u0645\u06cc\u200c\u062e\u0648":  "\u0645\u06cc\u200c\u062e\u0648", // Persian needs its joiner
		"\U0001f3f4\U000e0067\U000e007f ": "\U0001f3f4\U000e0067\U000e007f", // a flag ends in a format character
	} {
		if got := normalText(given); got != want {
			t.Errorf("%+q is %+q, want %+q", given, got, want)
		}
	}
}

func TestNormalText_IsTheSameOfEverySpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		normal := normalText(s)
		if !utf8.ValidString(normal) || normalText(normal) != normal {
			t.Fatalf("%+q is %+q, and that is %+q", s, normal, normalText(normal))
		}
		for _, spelling := range []string{norm.NFD.String(s), norm.NFC.String(s), " " + s, s + "\u00a0\n"} {
			if got := normalText(spelling); got != normal {
				t.Fatalf("%+q is %+q, but %+q is %+q", s, normal, spelling, got)
			}
		}
	})
}

func TestNormalText_OfNormalTextDoesNotAllocate(t *testing.T) {
	for _, s := range []string{"sara@example.com", "يرجى التفعيل قبل الجمعة"} {
		if n := testing.AllocsPerRun(100, func() { normalText(s) }); n != 0 {
			t.Errorf("%v allocations of %s", n, s)
		}
	}
}

func BenchmarkNormalText(b *testing.B) {
	for name, s := range map[string]string{"ASCII": "sara@example.com", "Arabic": "يرجى التفعيل قبل الجمعة"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				normalText(s)
			}
		})
	}
}

// A line that an earlier version stored keeps its id and its text.
func TestService_ShowsAndChangesALineStoredInAnotherForm(t *testing.T) {
	t.Parallel()
	d := openDesk(t, Sum)
	d.goods.put(account())
	sh := d.as("", tokenOf("old"))
	fields := []FieldValue{{"email", " jose\u0301@example.com"}, {"region", "us"}}
	old := newLine{
		id: newLineID(5, 51, fields), quantity: 1, price: 4025, fields: fields, notice: "\u200b",
		bounds: bounds{stock: -1, least: 1, most: 999},
	}
	if _, err := d.redis.add(t.Context(), sh.ref, Conditions{Now: d.now(), CartID: "OLD"}, old); err != nil {
		t.Fatal(err)
	}
	priced, _, err := d.Read(t.Context(), sh)
	if err != nil {
		t.Fatal(err)
	}
	shown := inLanguage("en")
	shown.cart(&priced, "", nil, nil)
	if l := priced.Lines[0]; l.ID != old.id || l.Issue != nil || l.Total != 4025 || !strings.Contains(string(shown.Bytes()), " jose\u0301@") {
		t.Errorf("line %s with issue %v, total %d: %s", l.ID, l.Issue, l.Total, shown.Bytes())
	}
	if changed, err := d.SetQuantity(t.Context(), sh, Conditions{}, old.id, 3, "quantity"); err != nil || changed.Lines[0].Quantity != 3 {
		t.Errorf("set to 3: %v, %v", linesOf(changed.Cart), err)
	}
	if changed, err := d.Remove(t.Context(), sh, Conditions{}, old.id); err != nil || len(changed.Lines) != 0 {
		t.Errorf("removed: %v, %v", linesOf(changed.Cart), err)
	}
}
