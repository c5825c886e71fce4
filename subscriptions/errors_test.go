package subscriptions

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"commerce/cart/locale"
)

func TestErrors_AreWordedInBothLanguages(t *testing.T) {
	t.Parallel()
	texts := []locale.Text{
		textNotFound, textUnavailable, textUnreadable, textUnknown, textRepeated, textEmpty,
		textPage, textPerPage, textEmail, textPhone, textCallingCode, textLink,
	}
	for _, text := range texts {
		en, ar := text[locale.En], text[locale.Ar]
		if en == "" || !strings.ContainsFunc(ar, func(r rune) bool { return unicode.Is(unicode.Arabic, r) }) {
			t.Errorf("%q, %q: want English and Arabic", en, ar)
		}
	}
}

func TestError_TellsTheLogTheCauseAndNeverAValue(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	if err := unavailable(down); !errors.Is(err, down) || !strings.Contains(err.Error(), "connection refused") || err.Faults("en") != nil {
		t.Errorf("got %v", err)
	}
	_, err := parseListing("customerEmail=secret-person&customerPhone=%2B966secret")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the log would read %v", err)
	}
}
