package money

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/bojanz/currency"

	"commerce/auth/locale"
)

// A Formatter caches buckets × ways texts, about 1 MiB.
const (
	bucketBits = 11
	buckets    = 1 << bucketBits
	ways       = 4
)

// Formatter formats amounts for shoppers. It caches the latest texts, in limited memory. It is safe
// for concurrent use; the zero value is not usable.
//
// Texts follow CLDR. In English the symbol is before the number: "SAR 49.50", "$49.50".
// In Arabic it is after the number, and in Arabic script where CLDR has such a symbol:
// "49.50 ر.س." with direction marks. Digits are Western, as in CLDR's general Arabic locale (ar),
// since stores in several countries share the language; ar-SA would give ٤٩٫٥٠.
type Formatter struct {
	byLanguage map[locale.Locale]*currency.Formatter
	kept       [buckets]bucket
}

// bucket holds texts whose keys have the same hash, the newest first. A reader may miss a text that
// is being moved, and formats it again.
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

// slot returns the index of a key in the cache. Fibonacci hashing spreads amounts that are close to
// each other. With package maphash, rendering a cart takes 12 % more CPU time (BenchmarkView).
func (k key) slot() uint64 {
	h := uint64(k.amount)
	for i := range len(k.currency) {
		h = h*31 + uint64(k.currency[i])
	}
	for i := range len(k.locale) {
		h = h*31 + uint64(k.locale[i])
	}
	const golden = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	return h * golden >> (64 - bucketBits)
}

func NewFormatter() *Formatter {
	f := &Formatter{byLanguage: map[locale.Locale]*currency.Formatter{}}
	for _, l := range locale.All() {
		f.byLanguage[l] = newFormatter(l)
	}
	return f
}

func newFormatter(l locale.Locale) *currency.Formatter {
	return currency.NewFormatter(currency.NewLocale(string(l)))
}

// Price is an amount of a currency, as an argument of a sentence.
type Price struct {
	Amount   Amount
	Currency string
}

// In returns the price as Formatter.Format does, without a cache: few sentences have a price.
func (p Price) In(l locale.Locale) string {
	if !slices.Contains(locale.All(), l) {
		l = locale.En
	}
	s, _ := write(newFormatter(l), p.Amount, p.Currency)
	return s
}

// Format returns a with all decimals of the currency and its symbol, in English if l is not in
// locale.All. For a currency that Digits does not know, it returns only the code.
func (f *Formatter) Format(a Amount, code string, l locale.Locale) string {
	k := key{a, code, l}
	b := &f.kept[k.slot()]
	if s, ok := b.find(k); ok {
		return s
	}
	formatter := f.byLanguage[l]
	if formatter == nil {
		formatter = f.byLanguage[locale.En]
	}
	s, ok := write(formatter, a, code)
	if ok {
		// The key outlives the call, and must not keep a larger string in memory.
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

// write formats without the cache; ok is false for an unknown currency.
func write(formatter *currency.Formatter, a Amount, code string) (s string, ok bool) {
	if withdrawn(code) { // a currency that CLDR lists, with as many decimals, gets its code as the symbol
		const standIn = "USD"
		f := *formatter
		f.SymbolMap = map[string]string{standIn: code}
		formatter, code = &f, standIn
	}
	amount, err := currency.NewAmountFromInt64(int64(a), code)
	if err != nil {
		return code, false
	}
	return formatter.Format(amount), true
}
