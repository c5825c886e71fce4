package formats

import (
	"testing"

	"commerce/deploy/assert"
)

func TestPreferred_IsTheNamedFormatOfTheHighestQuality(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]Format{
		"":                                      JSON,
		"*/*":                                   JSON,
		"text/*":                                JSON,
		"text/html":                             JSON,
		"application/json":                      JSON,
		"application/x-ndjson":                  NDJSON,
		"Application/X-NDJSON; charset=utf-8":   NDJSON,
		"text/csv":                              CSV,
		"text/csv; header=present":              CSV,
		"text/html, text/csv;q=0.1, */*;q=0.9":  CSV,
		"text/csv, application/x-ndjson":        CSV,
		"application/json, text/csv":            JSON,
		"application/json;q=0.5, text/csv;q=.6": CSV,
		"text/csv;q=0":                          JSON,
		"text/csv;q=x":                          JSON,
		"text/csv;q=NaN":                        JSON,
		"text/csv;;":                            JSON,
		",,text/csv,":                           CSV,
	} {
		assert.Equal(t, Preferred(accept, JSON, NDJSON, CSV), want, "%q", accept)
	}
}
