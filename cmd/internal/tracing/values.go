package tracing

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpguts"
)

// These functions check values as the SDK reads them. It ignores space around some, but not
// around numbers.

func oneOf(words ...string) func(string) error {
	return func(value string) error {
		if slices.Contains(words, strings.ToLower(strings.TrimSpace(value))) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", value, strings.Join(words, ", "))
	}
}

// parseURL does not quote the value, which may have a password.
func parseURL(value string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(value))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("must be an http or https URL, such as http://collector:4318")
	}
	return u, nil
}

// protocol also refuses http/protobuf, OpenTelemetry's default: who sets it would get another
// format.
func protocol(value string) error {
	if strings.TrimSpace(value) == "http/json" {
		return nil
	}
	return fmt.Errorf("%q: the service sends only http/json, which OpenTelemetry's collector accepts on its port for HTTP, usually 4318", value)
}

// parseCompression returns whether the value says gzip.
func parseCompression(value string) (gzip bool, err error) {
	switch strings.TrimSpace(value) {
	case "gzip":
		return true, nil
	case "none":
		return false, nil
	}
	return false, fmt.Errorf("%q is not one of gzip, none", value)
}

func ratio(value string) error {
	if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || !(n >= 0 && n <= 1) {
		return fmt.Errorf("%q is not a number from 0 to 1", value)
	}
	return nil
}

// maxCount is a million spans, or 17 minutes in milliseconds. The SDK reserves memory for as many
// spans as it is told, and some higher times overflow.
const maxCount = 1_000_000

// parseCount reads a number of spans, or of milliseconds.
func parseCount(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > maxCount {
		return 0, fmt.Errorf("%q is not a whole number from 1 to %d; times are in ms", value, maxCount)
	}
	return n, nil
}

// pairs checks name=value pairs. A value may have escapes, as in a URL.
func pairs(value string) error {
	for pair := range strings.SplitSeq(value, ",") {
		name, v, ok := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(strings.TrimSpace(v)); !ok || strings.TrimSpace(name) == "" || err != nil {
			return fmt.Errorf("%q is not name=value, with %%2C for a comma and %%25 for a percent sign", pair)
		}
	}
	return nil
}

// parseHeaders does not quote the value, which may be a key.
func parseHeaders(value string) (http.Header, error) {
	all := http.Header{}
	for pair := range strings.SplitSeq(value, ",") {
		name, v, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		v, err := url.PathUnescape(v)
		if !ok || !httpguts.ValidHeaderFieldName(name) || err != nil || strings.ContainsFunc(v, unicode.IsControl) {
			return nil, errors.New("must be name=value pairs, separated by commas, with %2C for a comma and %25 for a percent sign in a value")
		}
		all.Set(name, strings.TrimSpace(v))
	}
	return all, nil
}
