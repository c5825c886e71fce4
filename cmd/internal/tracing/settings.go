package tracing

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// On reports whether the environment turns traces on: it sets an endpoint, and disables neither
// the SDK nor the traces exporter.
func On(env func(string) string) bool {
	off := strings.EqualFold(strings.TrimSpace(env("OTEL_SDK_DISABLED")), "true") || env("OTEL_TRACES_EXPORTER") == "none"
	return !off && (env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "")
}

// Faults returns the invalid variables, each with its error. The SDK would ignore them, and
// send no traces or all of them. If traces are off, Faults returns an empty map.
func Faults(env func(string) string) map[string]error {
	faults := map[string]error{}
	if !On(env) {
		return faults
	}
	check := func(fault func(string) error, names ...string) {
		for _, name := range names {
			if value := strings.TrimSpace(env(name)); value != "" {
				if err := fault(value); err != nil {
					faults[name] = err
				}
			}
		}
	}
	check(oneOf("otlp"), "OTEL_TRACES_EXPORTER")
	check(oneOf("http/protobuf", "http/json"), "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	check(endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	check(oneOf(samplers...), "OTEL_TRACES_SAMPLER")
	if strings.HasSuffix(strings.ToLower(env("OTEL_TRACES_SAMPLER")), "traceidratio") {
		check(ratio, "OTEL_TRACES_SAMPLER_ARG")
	}
	return faults
}

var samplers = []string{
	"always_on", "always_off", "traceidratio",
	"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
}

func oneOf(words ...string) func(string) error {
	return func(value string) error {
		if slices.Contains(words, strings.ToLower(value)) {
			return nil
		}
		return fmt.Errorf("%q is not one of %s", value, strings.Join(words, ", "))
	}
}

// endpoint does not quote the value, which may contain a password.
func endpoint(value string) error {
	u, err := url.Parse(value)
	if err != nil || cmp.Or(u.Scheme, "none") != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("must be an http or https URL, such as http://collector:4318")
	}
	return nil
}

func ratio(value string) error {
	if n, err := strconv.ParseFloat(value, 64); err != nil || !(n >= 0 && n <= 1) {
		return fmt.Errorf("%q is not a number from 0 to 1", value)
	}
	return nil
}
