package cart

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"commerce/deploy/assert"
)

func TestNormalText(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                               "",
		"a@example.com":                  "a@example.com",
		" \t\r\n a \u00a0\u3000":         "a",
		"a  b\nc":                        "a  b\nc",
		"cafe\u0301":                     "café", // NFD
		"caf\u00e9":                      "café",
		"\u0622\u0645\u0627\u0644":       "آمال",
		"\u0627\u0653\u0645\u0627\u0644": "آمال",
		" ":                              "",
		"\u200b":                         "", // zero width space
		"\u200f\u200e\ufeff":             "", // direction marks, byte order mark
		"\u202a \u202c":                  "",
		"\u00ad\u2060\u2064":             "", // soft hyphen, word joiner, invisible plus
		"\u3164\u115f\ufe0f\u034f":       "", // fillers, variation selector, grapheme joiner
		"\x00\x1b\x7f\u0085":             "",
		"\u200b\u200e x\u202c\u2069\ufeff \u00ad": "x", // what chats add
		"\u200be\u0301":                   "é",
		"\u0645\u06cc\u200c\u062e\u0648":  "\u0645\u06cc\u200c\u062e\u0648", // Persian needs its joiner
		"\u0600x\u06dd":                   "\u0600x\u06dd",                  // format characters that are seen
		"a\r\nb\rc\n\r\nd":                "a\nb\nc\n\nd",
		"\U0001f3f4\U000e0067\U000e007f ": "\U0001f3f4\U000e0067\U000e007f", // a flag ends in a format character
	} {
		assert.Equal(t, NormalText(given), want, "NormalText(%+q)", given)
	}
}

func TestNormalText_IsTheSameForEverySpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		normal := NormalText(s)
		if !utf8.ValidString(normal) || NormalText(normal) != normal {
			t.Fatalf("%+q is %+q, and that is %+q", s, normal, NormalText(normal))
		}
		for _, spelling := range []string{norm.NFD.String(s), norm.NFC.String(s), " \u200f" + s, s + "\u00a0\r\n\u2069", strings.ReplaceAll(normal, "\n", "\r\n")} {
			if got := NormalText(spelling); got != normal {
				t.Fatalf("%+q is %+q, but %+q is %+q", s, normal, spelling, got)
			}
		}
	})
}

func TestExceeds_OnlyWhatTheNormalFormExceeds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SampledFrom([]string{"\u0301", "\u0344", "\u0345", "\u0dcf", "\u1100", "\u1161", "\u11a8", "\u3164", "\r\n", " ", "α", "a"})
		s := strings.Join(rapid.SliceOf(rapid.OneOf(texts, rapid.String())).Draw(t, "texts"), "")
		normal := NormalText(s)
		if exceeds(s, len(normal)) {
			t.Fatalf("%+q has at most %d bytes", s, len(normal))
		}
		if TooLong(s, int64(utf8.RuneCountInString(normal))) {
			t.Fatalf("%+q has at most %d characters", s, utf8.RuneCountInString(normal))
		}
	})
	assert.That(t, exceeds(strings.Repeat("가", 2), 1), "six bytes of Hangul")
	assert.That(t, !exceeds(strings.Repeat("\u3164", 100), 1), "text that nobody sees")
}

func TestNormalText_OfNormalTextDoesNotAllocate(t *testing.T) {
	for _, s := range []string{"sara@example.com", "يرجى التفعيل قبل الجمعة"} {
		assert.Equal(t, testing.AllocsPerRun(100, func() { NormalText(s) }), 0, "allocations for %s", s)
	}
}
