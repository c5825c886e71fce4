package locale_test

import (
	"testing"

	"commerce/auth/locale"
)

func TestText_FallsBackToEnglish(t *testing.T) {
	t.Parallel()
	full := locale.Text{locale.En: "cart", locale.Ar: "سلة"}
	for _, tc := range []struct {
		name string
		text locale.Text
		in   locale.Locale
		want string
	}{
		{"english", full, locale.En, "cart"},
		{"arabic", full, locale.Ar, "سلة"},
		{"another language", full, "fr", "cart"},
		{"missing", locale.Text{locale.En: "cart"}, locale.Ar, "cart"},
		{"empty", locale.Text{locale.En: "cart", locale.Ar: ""}, locale.Ar, "cart"},
		{"no text at all", nil, locale.Ar, ""},
	} {
		if got := tc.text.In(tc.in); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
