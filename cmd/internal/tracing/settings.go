package tracing

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"commerce/cmd/internal/tracing/otlp"
	"commerce/deploy/connect"
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
	if !On(env) {
		return nil
	}
	_, faults := read(env)
	return faults
}

// collector returns where and how the environment says to send spans.
func collector(env func(string) string, version string) (otlp.Config, error) {
	c, faults := read(env)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		errs = append(errs, fmt.Errorf("%s: %w", name, faults[name]))
	}
	if len(errs) == 0 && c.URL == nil {
		errs = append(errs, errors.New("no endpoint is set"))
	}
	header := http.Header{"User-Agent": {"commerce/" + version}}
	maps.Copy(header, c.Header)
	c.Header = header
	return c, errors.Join(errs...)
}

// read returns what the environment says about the collector, and the variables that are wrong.
// Of the exporter's variables, those for traces alone take precedence.
func read(env func(string) string) (c otlp.Config, faults map[string]error) {
	v := variables{env, map[string]error{}}
	v.check(oneOfAnyCase("otlp"), "OTEL_TRACES_EXPORTER")
	v.check(oneOfAnyCase("always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"), "OTEL_TRACES_SAMPLER")
	if strings.HasSuffix(strings.ToLower(strings.TrimSpace(env("OTEL_TRACES_SAMPLER"))), "traceidratio") {
		v.check(ratio, "OTEL_TRACES_SAMPLER_ARG")
	}
	v.check(pairs, "OTEL_RESOURCE_ATTRIBUTES")
	milliseconds, number := 10_000, 0
	for _, name := range []string{"SCHEDULE_DELAY", "EXPORT_TIMEOUT", "MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE"} {
		parse(v, "OTEL_BSP_"+name, parseCount, &number) // the SDK reads it again
	}
	const general, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	var files tls.Config
	for _, prefix := range []string{general, traces} {
		parse(v, prefix+"ENDPOINT", parseURL, &c.URL)
		if prefix == general && c.URL != nil { // it is a base
			c.URL = c.URL.JoinPath("v1/traces")
		}
		v.check(protocol, prefix+"PROTOCOL")
		parse(v, prefix+"HEADERS", parseHeaders, &c.Header)
		parse(v, prefix+"TIMEOUT", parseCount, &milliseconds)
		parse(v, prefix+"COMPRESSION", parseCompression, &c.Gzip)
		parse(v, prefix+"CERTIFICATE", readAuthorities, &files.RootCAs)
		if pair, wrong, err := clientCertificates(env, prefix); err != nil {
			v.faults[wrong] = err
		} else if pair != nil {
			files.Certificates = pair
		}
	}
	c.Timeout = time.Duration(milliseconds) * time.Millisecond
	if files.RootCAs != nil || files.Certificates != nil {
		c.TLS = &files
	}
	if err := cmp.Or(v.faults[general+"ENDPOINT"], v.faults[traces+"ENDPOINT"]); err == nil && c.URL != nil && c.URL.Scheme != "https" {
		// The operator expects these files to protect the spans.
		unused := func(string) error { return errors.New("is set, but the collector's URL is not https") }
		for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
			v.check(unused, general+name, traces+name)
		}
	}
	return c, v.faults
}

// variables are those of an environment. A variable of nothing but space is not set.
type variables struct {
	env    func(string) string
	faults map[string]error
}

func (v variables) check(fault func(string) error, names ...string) {
	for _, name := range names {
		if value := v.env(name); strings.TrimSpace(value) != "" {
			if err := fault(value); err != nil {
				v.faults[name] = err
			}
		}
	}
}

// parse stores the value of a variable that is set and valid.
func parse[T any](v variables, name string, parse func(string) (T, error), to *T) {
	v.check(func(value string) error {
		parsed, err := parse(value)
		if err == nil {
			*to = parsed
		}
		return err
	}, name)
}

// readAuthorities reads a file of certificates that the collector's must be signed by.
func readAuthorities(path string) (*x509.CertPool, error) {
	pem, err := connect.ReadRegular(strings.TrimSpace(path))
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, errors.New("has no certificate in PEM form")
	}
	return authorities, nil
}

// clientCertificates reads the files of the client's certificate and key, if there are any. With
// an error it returns the variable that is wrong.
func clientCertificates(env func(string) string, prefix string) (pair []tls.Certificate, wrong string, err error) {
	certName, keyName := prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY"
	certPath, keyPath := strings.TrimSpace(env(certName)), strings.TrimSpace(env(keyName))
	switch {
	case certPath == "" && keyPath == "":
		return nil, "", nil
	case certPath == "":
		return nil, certName, errors.New("is required with " + keyName)
	case keyPath == "":
		return nil, keyName, errors.New("is required with " + certName)
	}
	cert, err := connect.ReadRegular(certPath)
	if err != nil {
		return nil, certName, err
	}
	key, err := connect.ReadRegular(keyPath)
	if err != nil {
		return nil, keyName, err
	}
	both, err := tls.X509KeyPair(cert, key)
	return []tls.Certificate{both}, certName, err
}
