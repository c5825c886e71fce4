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

// On reports whether the environment turns traces on: it sets an endpoint, and disables neither
// the SDK nor the traces exporter.
func On(env func(string) string) bool {
	is := func(name, value string) bool { return strings.EqualFold(strings.TrimSpace(env(name)), value) }
	if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
		return false
	}
	return !is("OTEL_EXPORTER_OTLP_ENDPOINT", "") || !is("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
}

// Faults returns the variables that are wrong, each with its error. The SDK would ignore them,
// log their values, or send no traces or all of them. It returns none if traces are off.
func Faults(env func(string) string) map[string]error {
	faults := map[string]error{}
	if !On(env) {
		return faults
	}
	check := func(fault func(string) error, names ...string) {
		for _, name := range names {
			if value := env(name); strings.TrimSpace(value) != "" {
				if err := fault(value); err != nil {
					faults[name] = err
				}
			}
		}
	}
	check(oneOfAnyCase("otlp"), "OTEL_TRACES_EXPORTER")
	check(oneOfAnyCase("always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"), "OTEL_TRACES_SAMPLER")
	if strings.HasSuffix(strings.ToLower(strings.TrimSpace(env("OTEL_TRACES_SAMPLER"))), "traceidratio") {
		check(ratio, "OTEL_TRACES_SAMPLER_ARG")
	}
	check(pairs, "OTEL_RESOURCE_ATTRIBUTES")
	check(valid(parseCount), "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
	for _, prefix := range prefixes {
		check(valid(parseURL), prefix+"ENDPOINT")
		check(protocol, prefix+"PROTOCOL")
		check(valid(parseHeaders), prefix+"HEADERS")
		check(valid(parseCount), prefix+"TIMEOUT")
		check(valid(parseCompression), prefix+"COMPRESSION")
		check(valid(readAuthorities), prefix+"CERTIFICATE")
		if _, name, err := clientCertificates(env, prefix); err != nil {
			faults[name] = err
		}
	}
	if u, err := collectorURL(env); err == nil && u.Scheme != "https" {
		// The operator expects these files to protect the spans.
		unused := func(string) error { return errors.New("is set, but the collector's URL is not https") }
		for _, prefix := range prefixes {
			check(unused, prefix+"CERTIFICATE", prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY")
		}
	}
	return faults
}

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

// valid returns a check that a value can be parsed.
func valid[T any](parse func(string) (T, error)) func(string) error {
	return func(value string) error {
		_, err := parse(value)
		return err
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
	return strings.TrimSpace(value) == "gzip", oneOf("gzip", "none")(value)
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
