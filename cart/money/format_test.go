package money_test

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

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
