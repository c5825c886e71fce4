package tracing

import (
	"errors"
	"strings"
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
	check(oneOfAnyCase(samplers...), "OTEL_TRACES_SAMPLER")
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
		for _, prefix := range prefixes {
			check(unused, prefix+"CERTIFICATE", prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY")
		}
	}
	return faults
}

// unused is for files that the operator expects to protect the spans.
func unused(string) error { return errors.New("is set, but the collector's URL is not https") }

var samplers = []string{
	"always_on", "always_off", "traceidratio",
	"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
}
