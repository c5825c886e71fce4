package subscriptionshttp

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/goleak"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/subscriptions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestErrors_HaveSentencesInBothLanguages(t *testing.T) {
	t.Parallel()
	texts := []locale.Text{
		textNoParameters, textUnreadable, textUnknown, textRepeated, textEmpty,
		textNumber, textTooFar, textEmail, textPhone, textCallingCode, textStatuses, textExternalCustomer, textLink,
		textUnknownOfChanges, textNoValue, textLimitOfStream, textCursor,
	}
	for _, known := range []*problem.Error{
		subscriptions.ErrNotFound, subscriptions.ErrCursorExpired, subscriptions.ErrNoChanges, subscriptions.ErrManySkips,
		subscriptions.Unavailable(nil), errManyStreams,
	} {
		texts = append(texts, locale.Text{locale.En: known.Message(locale.En), locale.Ar: known.Message(locale.Ar)})
	}
	for _, text := range texts {
		en, ar := text[locale.En], text[locale.Ar]
		assert.That(t, en != "" && strings.ContainsFunc(ar, func(r rune) bool { return unicode.Is(unicode.Arabic, r) }),
			"%q, %q: want English and Arabic", en, ar)
	}
}

func TestError_LogsTheCauseAndNeverAValue(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	if err := subscriptions.Unavailable(down); !errors.Is(err, down) || !strings.Contains(err.Error(), "connection refused") || err.Members("en") != nil {
		t.Errorf("got %v", err)
	}
	_, err := parseListing("customerEmail=secret-person&customerPhone=%2B966secret")
	assert.That(t, err != nil && !strings.Contains(err.Error(), "secret"), "the log would read %v", err)
}

func TestPreferred_IsTheNamedFormatOfTheHighestQuality(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]format{
		"":                                      asJSON,
		"*/*":                                   asJSON,
		"text/*":                                asJSON,
		"text/html":                             asJSON,
		"application/json":                      asJSON,
		"application/x-ndjson":                  asNDJSON,
		"Application/X-NDJSON; charset=utf-8":   asNDJSON,
		"text/csv":                              asCSV,
		"text/csv; header=present":              asCSV,
		"text/html, text/csv;q=0.1, */*;q=0.9":  asCSV,
		"text/csv, application/x-ndjson":        asCSV,
		"application/json, text/csv":            asJSON,
		"application/json;q=0.5, text/csv;q=.6": asCSV,
		"text/csv;q=0":                          asJSON,
		"text/csv;q=x":                          asJSON,
		"text/csv;q=NaN":                        asJSON,
		"text/csv;;":                            asJSON,
		",,text/csv,":                           asCSV,
	} {
		assert.Equal(t, preferred(accept), want, "%q", accept)
	}
}
