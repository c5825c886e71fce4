package subscriptions

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"commerce/auth/locale"
)

func TestErrors_AreWordedInBothLanguages(t *testing.T) {
	t.Parallel()
	texts := []locale.Text{
		textNotFound, textUnavailable, textDeep, textUnreadable, textUnknown, textRepeated, textEmpty,
		textPage, textTooFar, textPerPage, textEmail, textPhone, textCallingCode, textLink,
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

func TestError_TellsTheLogWhatWasBeingDone(t *testing.T) {
	t.Parallel()
	v := &visit{language: locale.Ar}
	down := errors.New("connection refused")
	inner := unavailable(down)
	err := v.explain(fmt.Errorf("list subscriptions of store 7: %w", inner))
	for _, want := range []string{"list subscriptions of store 7", "connection refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the log would read %v, want %q in it", err, want)
		}
	}
	var told *Error
	if !errors.As(err, &told) || !errors.Is(err, down) || told.Language() != locale.Ar ||
		told.Code() != inner.Code() || told.Message(locale.Ar) != inner.Message(locale.Ar) {
		t.Errorf("the caller would be told %+v, want what %v tells, in Arabic", told, inner)
	}
	if got, want := v.explain(notFound()).Error(), notFound().Error(); got != want {
		t.Errorf("an error that nothing wraps reads %q, want %q", got, want)
	}
}
