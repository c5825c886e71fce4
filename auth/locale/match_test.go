package locale_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/locale"
	"commerce/deploy/assert"
)

// none in the want column means the fallback, whichever it is.
const none locale.Locale = ""

var matches = []struct {
	name   string
	header string
	want   locale.Locale
}{
	{"empty", "", none},
	{"plain english", "en", locale.En},
	{"plain arabic", "ar", locale.Ar},
	{"a browser in english", "en-US,en;q=0.9", locale.En},
	{"a browser in arabic", "ar-SA,ar;q=0.9,en-US;q=0.8,en;q=0.7", locale.Ar},
	{"case", "EN-us", locale.En},
	{"script and region", "ar-Arab-SA", locale.Ar},
	{"three letters", "eng", locale.En},
	{"standard arabic", "arb", locale.Ar},
	{"unregistered region", "en-QQ", locale.En},
	{"unregistered variant", "ar-foobar", locale.Ar},
	{"extension", "ar-SA-u-nu-arab", locale.Ar},
	{"underscore", "ar_SA", locale.Ar},

	{"weights decide", "en;q=0.3, ar;q=0.7", locale.Ar},
	{"three decimals", "en;q=0.998, ar;q=0.999", locale.Ar},
	{"order decides equal weights", "ar, en", locale.Ar},
	{"order decides equal weights, given ones", "en;q=0.5, ar;q=0.5", locale.En},
	{"no weight is 1", "en;q=0.999, ar", locale.Ar},
	{"the best of several regions", "en;q=0.2, ar;q=0.5, en-GB;q=0.8", locale.En},
	{"white space", " \ten\t; q=0.1 ,  ar ; Q=0.200", locale.Ar},
	{"another language first", "fr-FR, fr;q=0.9, en;q=0.1", locale.En},
	{"only other languages", "fr, de;q=0.5", none},
	{"a relative is not the language", "ur, fa;q=0.9", none},
	{"a region is not a language", "und-SA", none},

	{"wildcard", "*", none},
	{"wildcard after another language", "fr, *;q=0.5", none},
	{"wildcard stands behind a name of equal weight", "*, ar", locale.Ar},
	{"wildcard outweighs", "en;q=0.5, *", locale.Ar},
	{"wildcard does not cover the named", "ar;q=0.1, *;q=0.05", locale.Ar},

	{"refused, wildcard", "en;q=0, *", locale.Ar},
	{"refused, other named", "en;q=0.000, ar;q=0.001", locale.Ar},
	{"refused alone", "ar;q=0", locale.En},
	{"refused beats its regions", "en-US, en;q=0, ar;q=0.1", locale.Ar},
	{"refused in either order", "en;q=0, en-US, ar;q=0.1", locale.Ar},
	{"one region refused", "en-GB;q=0, en;q=0.5, ar;q=0.4", locale.En},
	{"one region refused, wildcard", "en-GB;q=0, *;q=0.5", none},
	{"everything refused", "*;q=0", none},
	{"each refused", "en;q=0, ar;q=0", none},
	{"all but one refused", "*;q=0, en;q=0.2", locale.En},

	{"commas", ",,,", none},
	{"empty members", ", ,ar,", locale.Ar},
	{"no tag", ";q=1", none},
	{"not a tag", "§§§, \x00\xff, en-!!!", none},
	{"nonsense beside sense", "%%%, ar;q=0.2", locale.Ar},
	{"weight over 1", "en;q=1.001, ar;q=0.1", locale.Ar},
	{"weight too fine", "en;q=0.9999, ar;q=0.1", locale.Ar},
	{"weight negative", "en;q=-1, ar;q=0.1", locale.Ar},
	{"weight not a number", "en;q=NaN, ar;q=0.1", locale.Ar},
	{"weight with an exponent", "en;q=1e0, ar;q=0.1", locale.Ar},
	{"weight empty", "en;q=, ar;q=0.1", locale.Ar},
	{"weight without a whole part", "en;q=.5, ar;q=0.1", locale.Ar},
	{"weight with a bare point", "en;q=1., ar;q=0.1", locale.En},
	{"another parameter", "en;level=1, ar;q=0.1", locale.Ar},
	{"two parameters", "en;q=1;q=0.5, ar;q=0.1", locale.Ar},
	{"semicolon only", "en;, ar;q=0.1", locale.Ar},

	{"past the cap", strings.Repeat(" ", 512) + ",en", none},
	{"the last member read", strings.Repeat("fr,", 31) + "en", locale.En},
	{"a member too many", strings.Repeat("fr,", 32) + "en", none},
	{"before the cap", "ar," + strings.Repeat("fr,", 2000), locale.Ar},
	{"cut in two by the cap", strings.Repeat(" ", 510) + "en-GB", none},
	{"ends at the cap", strings.Repeat(" ", 510) + "en,ar;q=0.1", locale.En},
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, tc := range matches {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, fallback := range []locale.Locale{locale.En, locale.Ar} {
				want := tc.want
				if want == none {
					want = fallback
				}
				assert.Equal(t, locale.Match(tc.header, fallback), want, "Match(%q, %s)", tc.header, fallback)
			}
		})
	}
}

// The language with the higher weight wins at any position among other languages.
func TestMatch_HeavierWins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		en := rapid.IntRange(1, 1000).Draw(t, "en")
		ar := rapid.IntRange(1, 1000).Filter(func(w int) bool { return w != en }).Draw(t, "ar")
		members := rapid.Permutation([]string{
			fmt.Sprintf("en;q=%d.%03d", en/1000, en%1000),
			fmt.Sprintf("ar;q=%d.%03d", ar/1000, ar%1000),
			"fr", "de-DE;q=0.7", "*;q=0.001",
		}).Draw(t, "members")

		want := locale.En
		if ar > en {
			want = locale.Ar
		}
		header := strings.Join(members, ",")
		if got := locale.Match(header, none); got != want {
			t.Fatalf("Match(%q) = %q, want %q", header, got, want)
		}
	})
}

// Usual headers are parsed without allocations, and no header takes long.
func TestMatch_IsCheap(t *testing.T) {
	for _, header := range []string{"", "en", "ar", "en-US,en;q=0.9", "ar-SA,ar;q=0.9,en-US;q=0.8,en;q=0.7", "fr-FR,fr;q=0.9,*;q=0.1"} {
		n := testing.AllocsPerRun(100, func() { locale.Match(header, locale.En) })
		assert.That(t, n == 0, "Match(%q) allocates %v times", header, n)
	}
	for name, header := range hostile() {
		quickest := time.Hour // the others were interrupted by other processes
		for range 1000 {
			start := time.Now()
			locale.Match(header, locale.En)
			quickest = min(quickest, time.Since(start))
		}
		assert.That(t, quickest <= time.Millisecond, "%s: %v", name, quickest)
	}
}

// hostile returns headers far longer than servers accept, and some that are just parsed in full.
func hostile() map[string]string {
	fill := func(s string) string { return strings.Repeat(s, 510/len(s)) }
	return map[string]string{
		"megabyte":   strings.Repeat("-", 1<<20),
		"hyphens":    fill("-"),
		"subtags":    "en" + fill("-a1234"),
		"extensions": "en" + fill("-u-co-phonebk"),
		"singletons": "en" + fill("-a-bcd-e-fgh"),
		"variants":   "sl" + fill("-rozaj-biske"),
		"members":    fill("zz-Latn-ZZ-foobar,"),
		"short ones": fill("zzz,"),
		"letters":    fill("a"),
		"semicolons": fill(";"),
		"spaces":     fill(" "),
	}
}

func FuzzMatch(f *testing.F) {
	for _, tc := range matches {
		f.Add(tc.header)
	}
	for name, header := range hostile() {
		if name == "megabyte" {
			continue // it slows the fuzzer down, and TestMatch_IsCheap covers it
		}
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		en, ar := locale.Match(header, locale.En), locale.Match(header, locale.Ar)
		for _, got := range []locale.Locale{en, ar} {
			assert.Require(t, got == locale.En || got == locale.Ar, "Match(%q) = %q", header, got)
		}
		// The fallback decides only if the header does not.
		assert.Require(t, en != locale.Ar || ar != locale.En, "Match(%q) swaps the fallback languages", header)
		if got := locale.Match(header, none); got != none && (got != en || got != ar) {
			t.Fatalf("Match(%q) = %s without a fallback, %s and %s with one", header, got, en, ar)
		}
	})
}
