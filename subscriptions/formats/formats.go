// Package formats has the formats of answers that are no JSON: which one a client prefers, and CSV.
package formats

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Format is a media type of an answer.
type Format string

const (
	JSON   Format = "application/json" // one page
	NDJSON Format = "application/x-ndjson"
	CSV    Format = "text/csv"
)

// ContentType is the value of the header for a stream.
func (f Format) ContentType() string {
	if f == CSV {
		return string(f) + "; charset=utf-8; header=present"
	}
	return string(f)
}

// Accept returns the Accept header of a request, which may have several.
func Accept(r *http.Request) string { return strings.Join(r.Header.Values("Accept"), ",") }

// Preferred returns the format that an Accept header prefers: of those on offer the one with the highest
// quality, the first of several, JSON if it names none. A wildcard names none, because most
// programs send one by default.
func Preferred(accept string, offered ...Format) Format {
	best, quality := JSON, 0.0
	for item := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(item)
		f := Format(name)
		if err != nil || !slices.Contains(offered, f) {
			continue
		}
		q := 1.0
		if given, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(given, 64); err != nil {
				continue
			}
		}
		if q > quality {
			best, quality = f, q
		}
	}
	return best
}
