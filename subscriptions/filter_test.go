package subscriptions

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePhone(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Phone{
		"501234567": "501234567", "0501234567": "501234567", "00966501234567": "966501234567",
		"+966 (0)50-123.45/67": "9660501234567", " 966501234567": "966501234567", "1": "1",
		strings.Repeat("9", 20): Phone(strings.Repeat("9", 20)),

		"": "", "+": "", "0": "", "0000": "", "5a": "", "50+1": "", "٥٠١٢٣٤٥٦٧": "", "5\x00": "", "5;": "",
		strings.Repeat("9", 21): "",
	} {
		if got, ok := ParsePhone(s); got != want || ok != (want != "") {
			t.Errorf("ParsePhone(%q) = %q, %v; want %q", s, got, ok, want)
		}
	}
}

// Whatever a number looks like, each usual way to write it finds it, and the index
// over national numbers is asked for it.
func TestPhone_FindsEveryWayToWriteIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.StringMatching(`[1-9][0-9]{0,3}`).Draw(t, "code")
		national := rapid.StringMatching(`[1-9][0-9]{3,11}`).Draw(t, "national")
		stored := rapid.SampledFrom([]string{national, "0" + national, "+" + code + national, "00" + code + " " + national}).Draw(t, "stored")
		asked := rapid.SampledFrom([]string{
			national, "0" + national, code + national, "+" + code + national, "00" + code + national,
			"+" + code + " (0) " + national, national[:2] + "-" + national[2:],
		}).Draw(t, "asked")
		digits := NationalPhone(stored, code)
		phone, ok := ParsePhone(asked)
		if !ok || !phone.Matches(code, digits) {
			t.Fatalf("%q does not find %q, which is %q of %s", asked, stored, digits, code)
		}
		for _, n := range phone.Nationals() {
			if n == digits {
				return
			}
		}
		t.Fatalf("%q asks for %v, not for %q", asked, phone.Nationals(), digits)
	})
}

func TestPhone_FindsNoOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ asked, code, national string }{
		{"501234567", "966", "501234568"},
		{"966501234567", "971", "501234567"},
		{"501234567", "966", ""},
		{"966", "966", ""},
		{"12345678", "7", "7012345678"},
		{"9669501234567", "966", "501234567"},
	} {
		if phone, ok := ParsePhone(tt.asked); !ok || phone.Matches(tt.code, tt.national) {
			t.Errorf("%s finds %s of %s", tt.asked, tt.national, tt.code)
		}
	}
}
