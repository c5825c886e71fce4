package period_test

import (
	"testing"

	"commerce/auth/locale"
	"commerce/cart/period"
	"commerce/deploy/assert"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key    period.Duration
		months int
		en, ar string
	}{
		{"monthly", 1, "1 month", "شهر"},
		{"quarterly", 3, "3 months", "3 أشهر"},
		{"semiAnnual", 6, "6 months", "6 أشهر"},
		{"annually", 12, "1 year", "سنة"},
		{"biennial", 24, "2 years", "سنتان"},
		{"quinquennial", 60, "5 years", "5 سنوات"},
		{"decennial", 120, "10 years", "10 سنوات"},
	} {
		got := tc.key.Months()
		assert.That(t, got == tc.months, "%q has %d months, want %d", tc.key, got, tc.months)
		for l, want := range map[locale.Locale]string{locale.En: tc.en, locale.Ar: tc.ar, "fr": tc.en} {
			assert.Equal(t, tc.key.Label(l), want, "%q in %s", tc.key, l)
		}
	}
}

func TestDuration_UnknownIsNotValid(t *testing.T) {
	t.Parallel()
	for _, d := range []period.Duration{"", "weekly", "Monthly", "semiannual", " monthly"} {
		assert.That(t, d.Months() == 0, "%q has %d months", d, d.Months())
		for _, l := range []locale.Locale{locale.En, locale.Ar} {
			got := d.Label(l)
			assert.That(t, got == string(d), "%q in %s: %q, want the key", d, l, got)
		}
	}
}
