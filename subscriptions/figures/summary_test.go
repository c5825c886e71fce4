package figures

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

var now = time.Date(2025, 11, 20, 10, 0, 0, 0, time.UTC)

// totalOf returns a total of n subscriptions with a sum of prices.
func totalOf(status subscriptions.Status, currency string, duration period.Duration, n int64, prices string) Total {
	sum, ok := new(big.Int).SetString(prices, 10)
	if !ok {
		panic(prices)
	}
	return Total{Status: status, Currency: currency, Duration: duration, Count: n, Prices: sum}
}

func TestSummarize_RoundsOncePerCurrencyHalfAwayFromZero(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		totals []Total
		want   money.Amount
	}{
		{"a whole amount", []Total{totalOf(subscriptions.Active, "SAR", period.Annually, 1, "12000")}, 1000},
		{"below a half", []Total{totalOf(subscriptions.Active, "SAR", period.Quarterly, 1, "1")}, 0},
		{"a half", []Total{totalOf(subscriptions.Active, "SAR", period.SemiAnnual, 1, "3")}, 1},
		{"a negative half", []Total{totalOf(subscriptions.Active, "SAR", period.SemiAnnual, 1, "-3")}, -1},
		{"just below a half", []Total{totalOf(subscriptions.Active, "SAR", period.Decennial, 1, "59")}, 0},
		{"parts below a half", []Total{
			totalOf(subscriptions.Active, "SAR", period.Quarterly, 1, "1"), totalOf(subscriptions.PastDue, "SAR", period.Quarterly, 1, "1"),
			totalOf(subscriptions.Active, "SAR", period.SemiAnnual, 1, "2"),
		}, 1},
		{"the largest", []Total{totalOf(subscriptions.Active, "SAR", period.Annually, 9, "110680464442257309689")}, 1<<63 - 1}, // one more would be a half
	} {
		s, err := Summarize(tt.totals, now)
		assert.That(t, err == nil && len(s.MRR) == 1 && s.MRR[0].Amount == tt.want,
			"%s: %+v, %v; want %d", tt.name, s, err, tt.want)
	}
}

func TestSummarize_CountsEveryStatusAndSortsCurrencies(t *testing.T) {
	t.Parallel()
	var totals []Total
	for i, status := range subscriptions.Statuses {
		for j, currency := range []string{"SAR", "JPY", "KWD"} {
			total := totalOf(status, currency, period.Monthly, int64(10*i+j), "700")
			total.Ending = int64(i + 1)
			totals = append(totals, total)
		}
	}
	totals = append(totals, totalOf(subscriptions.Expired, "USD", period.Monthly, 1, "100"))
	want := &Summary{
		AsOf:     now,
		ByStatus: map[subscriptions.Status]int64{subscriptions.Trialing: 3, subscriptions.Active: 33, subscriptions.PastDue: 63, subscriptions.Paused: 93, subscriptions.Canceled: 123, subscriptions.Expired: 154},
		Ending:   3*1 + 3*2,
		MRR:      []Revenue{{"JPY", 1400, 11 + 21}, {"KWD", 1400, 12 + 22}, {"SAR", 1400, 10 + 20}},
	}
	got, err := Summarize(totals, now)
	assert.NoError(t, err)
	assert.Equal(t, got, want, "summary")
}

// A wrong figure is worse than none. What has no amount is counted in any case.
func TestSummarize_RefusesWhatItCannotShow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		total Total
		want  string
	}{
		"more than an Amount":  {totalOf(subscriptions.Active, "SAR", period.Monthly, 9, "9223372036854775808"), "monthly revenue in SAR"},
		"rounded to more":      {totalOf(subscriptions.PastDue, "SAR", period.SemiAnnual, 9, "55340232221128654845"), "monthly revenue in SAR"},
		"an unknown currency":  {totalOf(subscriptions.Active, "XYZ", period.Monthly, 1, "1"), `unknown currency "XYZ"`},
		"an unknown duration":  {totalOf(subscriptions.PastDue, "SAR", "weekly", 1, "1"), `unknown duration "weekly"`},
		"an unknown status":    {totalOf("frozen", "SAR", period.Monthly, 1, "1"), `unknown status "frozen"`},
		"expired":              {totalOf(subscriptions.Expired, "XYZ", "weekly", 1, "9223372036854775808"), ""},
		"on trial, not billed": {totalOf(subscriptions.Trialing, "XYZ", "weekly", 1, "9223372036854775808"), ""},
	} {
		s, err := Summarize([]Total{totalOf(subscriptions.Active, "SAR", period.Monthly, 1, "0"), tt.total}, now)
		if tt.want == "" {
			assert.That(t, err == nil && s.ByStatus[tt.total.Status] == 1, "%s: %+v, %v", name, s, err)
		} else if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v; want %s", name, s, err, tt.want)
		}
	}
}
