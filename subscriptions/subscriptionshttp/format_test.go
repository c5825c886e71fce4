package subscriptionshttp

import "testing"

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
		if got := preferred(accept); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}
