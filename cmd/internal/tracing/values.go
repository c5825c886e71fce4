package tracing

import (
	"errors"
	"fmt"
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
		if slices.Contains(words, strings.TrimSpace(value)) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", value, strings.Join(words, ", "))
	}
}

func oneOfAnyCase(words ...string) func(string) error {
	exact := oneOf(words...)
	return func(value string) error {
		if exact(strings.ToLower(value)) == nil {
			return nil
		}
		return exact(value)
	}
}

// endpoint does not quote the value, which may have a password.
func endpoint(value string) error {
	u, err := url.Parse(strings.TrimSpace(value))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("must be an http or https URL, such as http://collector:4318")
	}
	return nil
}

func ratio(value string) error {
	if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || !(n >= 0 && n <= 1) {
		return fmt.Errorf("%q is not a number from 0 to 1", value)
	}
	return nil
}

// count checks a number of spans, or of milliseconds.
func count(value string) error {
	if n, err := strconv.Atoi(value); err != nil || n < 1 {
		return fmt.Errorf("%q is not a positive whole number; times are in ms", value)
	}
	return nil
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

// headers does not quote the value, which may be a key.
func headers(value string) error {
	for pair := range strings.SplitSeq(value, ",") {
		name, v, ok := strings.Cut(pair, "=")
		v, err := url.PathUnescape(v)
		if !ok || !httpguts.ValidHeaderFieldName(strings.TrimSpace(name)) || err != nil || strings.ContainsFunc(v, unicode.IsControl) {
			return errors.New("must be name=value pairs, separated by commas, with %2C for a comma and %25 for a percent sign in a value")
		}
	}
	return nil
}
