package money

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/bojanz/currency"

	"commerce/auth/locale"
)

// A Formatter keeps buckets × ways texts, about 1 MiB of them. With several
// ways, two prices of one shop that fall into the same bucket both stay.
const (
	buckets = 2048
	ways    = 4
)

// Formatter writes amounts as a shopper reads them. It keeps what it wrote
// last, in a bounded number of places, as a shop shows the same prices over and
// over. It is safe for concurrent use; the zero value is not usable.
//
// Texts follow CLDR. English has the symbol before the number: "SAR 49.50",
// "$49.50". Arabic has it behind, in Arabic where there is such a symbol:
// "49.50 ر.س." with the marks that keep the order in mixed text. Its digits are
// the Western ones of CLDR's Arabic at large (ar), as in the labels of package
// period, since shops of several countries share the language; CLDR's Arabic of
// Saudi Arabia (ar-SA) would have ٤٩٫٥٠.
type Formatter struct {
	byLanguage map[locale.Locale]*currency.Formatter
	seed       maphash.Seed
	kept       [buckets]bucket
}

// bucket holds texts whose keys hash alike, the newest first. Its places change
// one by one: a reader may miss a text on its way down, and writes it again.
type bucket [ways]atomic.Pointer[text]

type text struct {
	key  key
	text string
}

type key struct {
	amount   Amount
	currency string
	locale   locale.Locale
}

// NewFormatter returns a Formatter that has kept nothing yet.
func NewFormatter() *Formatter {
	f := &Formatter{byLanguage: map[locale.Locale]*currency.Formatter{}, seed: maphash.MakeSeed()}
	for _, l := range locale.All() {
		f.byLanguage[l] = currency.NewFormatter(currency.NewLocale(string(l)))
	}
	return f
}

// Format returns a with all decimals of the currency and its symbol, in English
// where l is not one of ours. For a currency that Digits does not know it returns
// the code alone, since the amount in major units is not known.
func (f *Formatter) Format(a Amount, code string, l locale.Locale) string {
	k := key{a, code, l}
	b := &f.kept[maphash.Comparable(f.seed, k)%buckets]
	if s, ok := b.find(k); ok {
		return s
	}
	s, ok := f.write(a, code, l)
	if ok {
		// The key outlives the call, and must not hold on to a larger string.
		k.currency, k.locale = strings.Clone(code), locale.Locale(strings.Clone(string(l)))
		b.keep(&text{k, s})
	}
	return s
}

func (b *bucket) find(k key) (s string, ok bool) {
	for i := range b {
		if t := b[i].Load(); t != nil && t.key == k {
			return t.text, true
		}
	}
	return "", false
}

// keep puts t first and drops the oldest.
func (b *bucket) keep(t *text) {
	for i := range b {
		t = b[i].Swap(t)
	}
}

// write formats afresh; ok is false for an unknown currency.
func (f *Formatter) write(a Amount, code string, l locale.Locale) (s string, ok bool) {
	formatter := f.byLanguage[l]
	if formatter == nil {
		formatter = f.byLanguage[locale.En]
	}
	if withdrawn(code) {
		formatter, code = standingIn(formatter, code), standIn
	}
	amount, err := currency.NewAmountFromInt64(int64(a), code)
	if err != nil {
		return code, false
	}
	return formatter.Format(amount), true
}

// standIn is a currency that CLDR lists, with as many decimals as the withdrawn
// ones have.
const standIn = "USD"

// standingIn is f with the code of a withdrawn currency as the symbol of standIn.
func standingIn(f *currency.Formatter, code string) *currency.Formatter {
	g := *f
	g.SymbolMap = map[string]string{standIn: code}
	return &g
}
