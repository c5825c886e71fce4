package money_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

// currencies with 0, 2, 3 and 4 decimals.
var currencies = []string{"JPY", "SAR", "KWD", "CLF"}

func TestDigits(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"SAR": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4,
		"XCG": 2, "ZWG": 2, // since 2024
		"ANG": 2, "BGN": 2, "HRK": 2, // no longer in CLDR
	} {
		got, ok := money.Digits(code)
		assert.That(t, got == want && ok, "Digits(%q) = %d, %t, want %d", code, got, ok, want)
	}
	for _, code := range []string{"", "sar", "XXX", "SARS"} {
		got, ok := money.Digits(code)
		assert.That(t, got == 0 && !ok, "Digits(%q) = %d, %t, want an unknown currency", code, got, ok)
	}
}

func TestAppendMajor_IsExactAndShortest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		amount money.Amount
		digits int
		want   string
	}{
		{4950, 2, "49.5"},
		{500, 2, "5"},
		{-5, 2, "-0.05"},
		{0, 2, "0"},
		{5, 2, "0.05"},
		{50, 2, "0.5"},
		{333, 2, "3.33"},
		{100000, 2, "1000"},
		{-4950, 2, "-49.5"},
		{1, 3, "0.001"},
		{1200, 3, "1.2"},
		{1000, 0, "1000"},
		{0, 0, "0"},
		{-7, 0, "-7"},
		{12, 4, "0.0012"},
		{1, 25, "0.0000000000000000000000001"},
		{math.MaxInt64, 2, "92233720368547758.07"},
		{math.MinInt64, 2, "-92233720368547758.08"},
		{math.MinInt64, 0, "-9223372036854775808"},
	} {
		got := string(money.AppendMajor([]byte("x"), tc.amount, tc.digits))
		assert.That(t, got == "x"+tc.want, "AppendMajor(x, %d, %d) = %s, want x%s", tc.amount, tc.digits, got, tc.want)
	}
}

func TestAppendMajor_DoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 32)
	assert.Equal(t, testing.AllocsPerRun(100, func() { buf = money.AppendMajor(buf[:0], -123456, 2) }), 0, "allocations")
}

func TestAppendMajor_HasTheValueOfTheAmount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64().Draw(t, "amount")
		code := rapid.SampledFrom(currencies).Draw(t, "currency")
		digits, _ := money.Digits(code)

		text := string(money.AppendMajor(nil, money.Amount(a), digits))
		minor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
		got, ok := new(big.Rat).SetString(text)
		if want := new(big.Rat).SetFrac(big.NewInt(a), minor); !ok || got.Cmp(want) != 0 {
			t.Fatalf("%d of %s is %s, want %s", a, code, text, want.FloatString(digits))
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s is not a JSON number", text)
		}
		if strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
			t.Fatalf("%s is not the shortest", text)
		}
	})
}

const (
	nbsp = "\u00a0" // no-break space
	lrm  = "\u200e" // left-to-right mark
	rlm  = "\u200f" // right-to-left mark
)

var formats = []struct {
	amount   money.Amount
	currency string
	en, ar   string
}{
	{4950, "SAR", "SAR" + nbsp + "49.50", rlm + "49.50" + nbsp + "ر.س." + rlm},
	{4950, "USD", "$49.50", rlm + "49.50" + nbsp + "US$"},
	{4950, "JPY", "¥4,950", rlm + "4,950" + nbsp + "JP¥"},
	{4950, "KWD", "KWD" + nbsp + "4.950", rlm + "4.950" + nbsp + "د.ك." + rlm},

	{0, "SAR", "SAR" + nbsp + "0.00", rlm + "0.00" + nbsp + "ر.س." + rlm},
	{123456789, "SAR", "SAR" + nbsp + "1,234,567.89", rlm + "1,234,567.89" + nbsp + "ر.س." + rlm},
	{-5, "SAR", "-SAR" + nbsp + "0.05", rlm + lrm + "-0.05" + nbsp + "ر.س." + rlm},
	{-4950, "USD", "-$49.50", rlm + lrm + "-49.50" + nbsp + "US$"},
	{math.MinInt64, "USD", "-$92,233,720,368,547,758.08", rlm + lrm + "-92,233,720,368,547,758.08" + nbsp + "US$"},

	{4950, "XCG", "Cg.49.50", rlm + "49.50" + nbsp + "Cg."},
	{123456789, "BGN", "BGN" + nbsp + "1,234,567.89", rlm + "1,234,567.89" + nbsp + "BGN"},
	{-4950, "ANG", "-ANG" + nbsp + "49.50", rlm + lrm + "-49.50" + nbsp + "ANG"},

	{4950, "XXX", "XXX", "XXX"}, // unknown currency: better no amount than a wrong one
}

func TestFormatter_Format(t *testing.T) {
	t.Parallel()
	f := money.NewFormatter()
	for _, round := range []string{"first", "kept"} {
		for _, tc := range formats {
			for l, want := range map[locale.Locale]string{locale.En: tc.en, locale.Ar: tc.ar, "fr": tc.en} {
				assert.Equal(t, f.Format(tc.amount, tc.currency, l), want,
					"%s: Format(%d, %s, %s)", round, tc.amount, tc.currency, l)
				assert.Equal(t, (money.Price{Amount: tc.amount, Currency: tc.currency}).In(l), want,
					"Price{%d, %s}.In(%s)", tc.amount, tc.currency, l)
			}
		}
	}
}

// Concurrent calls with more prices than the cache holds never mix up texts.
func TestFormatter_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	f := money.NewFormatter()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for a := range money.Amount(10_000) {
				want := "¥" + strconv.Itoa(int(a))
				assert.Equal(t, strings.ReplaceAll(f.Format(a, "JPY", locale.En), ",", ""), want, "Format(%d)", a)
			}
		})
	}
	wg.Wait()
}

func TestFormatter_CachedTextsDoNotAllocate(t *testing.T) {
	f := money.NewFormatter()
	f.Format(4950, "SAR", locale.Ar)
	assert.Equal(t, testing.AllocsPerRun(100, func() { f.Format(4950, "SAR", locale.Ar) }), 0, "allocations")
}
