package subscriptions

import (
	"mime"
	"strconv"
	"strings"
)

// Format is the media type in which changes are sent.
type Format string

// All formats of changes.
const (
	JSON   Format = "application/json" // one page
	NDJSON Format = "application/x-ndjson"
	CSV    Format = "text/csv"
)

// preferred returns the format that an Accept header prefers: the one with the highest
// quality, the first of several, JSON if it names none. A wildcard names none, because most
// programs send one by default.
func preferred(accept string) Format {
	best, quality := JSON, 0.0
	for item := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(item)
		f := Format(name)
		if err != nil || f != JSON && f != NDJSON && f != CSV {
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

// contentType returns the Content-Type of a response.
func (f Format) contentType() string {
	if f == CSV {
		return string(f) + "; charset=utf-8; header=present"
	}
	return string(f)
}
