package subscriptions

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"commerce/deploy/assert"
)

func TestParsePhone(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Phone{
		"501234567": "501234567", "0501234567": "501234567", "00966501234567": "966501234567",
		"+966 (0)50-123.45/67": "9660501234567", " 966501234567": "966501234567", "1": "1",
		strings.Repeat("9", 20): Phone(strings.Repeat("9", 20)),
		"٠٥٠١٢٣٤٥٦٧":            "501234567", "۰۵۰۱۲۳۴۵۶۷": "501234567", "\u202a+966 50\u00a0123\u20114567\u202c": "966501234567",
		"\u200f٩٦٦\u200e501234567\ufeff": "966501234567",

		"": "", "+": "", "0": "", "0000": "", "5a": "", "50+1": "", "\u202a": "", "५": "", "\xd9": "", "5\n": "", "5\x00": "", "5;": "",
		strings.Repeat("9", 21): "",
	} {
		got, ok := ParsePhone(s)
		assert.That(t, got == want && ok == (want != ""), "ParsePhone(%q) = %q, %v; want %q", s, got, ok, want)
	}
}

// A number is found in every format of the row and of the query, and by the index of
// national numbers.
func TestPhone_FindsEveryFormat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.StringMatching(`[1-9][0-9]{0,3}`).Draw(t, "code")
		national := rapid.StringMatching(`[1-9][0-9]{3,11}`).Draw(t, "national")
		written := func(label string) string {
			way := rapid.SampledFrom([]string{
				national, "0" + national, code + national, code + "0" + national, "+" + code + national, "00" + code + national,
				"(+" + code + ") 0" + national, "+" + code + " (0) " + national, national[:2] + "-" + national[2:],
				"\u202a+" + code + "\u00a0" + national + "\u202c", code + "\u200f" + national,
			}).Draw(t, label)
			return strings.Map(rapid.SampledFrom([]func(rune) rune{
				func(r rune) rune { return r }, inDigitsFrom('\u0660'), inDigitsFrom('\u06F0'),
			}).Draw(t, label+" digits"), way)
		}
		stored, asked := written("stored"), written("asked")
		digits, uncoded := NationalPhone(stored, code)
		phone, ok := ParsePhone(asked)
		if !ok || !phone.Matches(code, digits, uncoded) {
			t.Fatalf("%q does not find %q, which is %q or %q of %s", asked, stored, digits, uncoded, code)
		}
		if nationals := phone.Nationals(); !slices.Contains(nationals, digits) && !slices.Contains(nationals, uncoded) {
			t.Fatalf("%q asks for %v, not for %q or %q", asked, nationals, digits, uncoded)
		}
	})
}

// inDigitsFrom returns a function that maps ASCII digits to the digits from zero on.
func inDigitsFrom(zero rune) func(rune) rune {
	return func(r rune) rune {
		if '0' <= r && r <= '9' {
			return zero + r - '0'
		}
		return r
	}
}

func TestPhone_FindsNoOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ asked, code, stored string }{
		{"501234567", "966", "501234568"},
		{"966501234567", "971", "501234567"},
		{"501234567", "966", ""},
		{"966", "966", ""},
		{"966", "966", "+966"},
		{"9669501234567", "966", "501234567"},
		{"501234567", "", "966501234567"},
		{"7711234567", "7", "7011234567"}, // both would be 11234567 if everything that looks like a calling code were removed
		{"7711234567", "7", "+77011234567"},
		{"01234567", "966", "501234567"},
	} {
		national, uncoded := NationalPhone(tt.stored, tt.code)
		phone, ok := ParsePhone(tt.asked)
		assert.That(t, ok && !phone.Matches(tt.code, national, uncoded), "%s finds %s of %s", tt.asked, tt.stored, tt.code)
	}
}
