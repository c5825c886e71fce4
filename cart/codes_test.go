package cart

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"commerce/deploy/assert"
)

func TestCouponKey(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"TEN": "TEN", "ten": "TEN", " tEn\u00a0\n": "TEN", "summer-25_%": "SUMMER-25_%", "": "", " ": "", "T EN": "T EN",
		"خصم-ten": "خصم-TEN", "\u0627\u0653": "\u0622",
		"CAF\u00c9": "CAFÉ", "CAFE\u0301": "CAFÉ", "caf\u00e9": "CAFé", "cafe\u0301": "CAFé", "i\u0307": "İ",
		"fıve": "FıVE", "FİVE": "FİVE", "ﬁve": "ﬁVE", "ſix": "ſIX", "straße": "STRAßE", "ｆｉｖｅ": "ｆｉｖｅ", // none of them FIVE, SIX or STRASSE
		"خصم١٠": "خصم10", "SAVE۴۵": "SAVE45", "save１０": "SAVE10", "९߉𝟘𝟡𝟢𝟿🯹": "9909099", "Ⅷ²①": "Ⅷ²①", // these are no decimal digits
		"e\u200b\u0301": "é", "\u200b x": "X",
		"\u0600\u06dd\ufff9\U00013430":   "\u0600\u06dd\ufff9\U00013430",   // format characters that are seen
		"\U0001f3f4\U000e0067\U000e007f": "\U0001f3f4\U000e0067\U000e007f", // a flag
	} {
		assert.Equal(t, CouponKey(given), want, "CouponKey(%+q)", given)
	}
	for _, invisible := range "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2064\u2066\u2067\u2068\u2069\u206f\ufeff\U0001bca0\U0001d17a\U000e0001" {
		assert.Equal(t, CouponKey(fmt.Sprintf("%cte%cn%c", invisible, invisible, invisible)), "TEN", "with %U", invisible)
	}
}

func TestCouponKey_IsTheSameForEverySpelling(t *testing.T) {
	t.Parallel()
	const special = "e\u0301i\u0307\u0338k\u212a ٣९\u200b\u200f"
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune(special))))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		key := CouponKey(s)
		for _, spelling := range []string{key, norm.NFD.String(s), norm.NFC.String(s), " " + s + "\u200e", strings.Join(strings.Split(s, ""), "\u2060")} {
			if got := CouponKey(spelling); got != key {
				t.Fatalf("%+q is %+q, but %+q is %+q", s, key, spelling, got)
			}
		}
	})
}

func TestCouponKey_OfAKeyDoesNotAllocate(t *testing.T) {
	assert.Equal(t, testing.AllocsPerRun(100, func() { CouponKey("SAVE-10") }), 0, "allocations")
}
