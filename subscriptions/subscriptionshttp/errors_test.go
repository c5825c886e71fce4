package subscriptionshttp

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"commerce/deploy/assert"
	"commerce/subscriptions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestError_LogsTheCauseAndNeverAValue(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	known := subscriptions.Unavailable(down)
	assert.ErrorIs(t, known, down, "unavailable")
	assert.That(t, strings.Contains(known.Error(), "connection refused") && known.Members("en") == nil, "got %v", known)
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
		assert.Equal(t, preferred(accept, asJSON, asNDJSON, asCSV), want, "%q", accept)
	}
}
