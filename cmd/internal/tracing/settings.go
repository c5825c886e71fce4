package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/http/httpguts"

	"commerce/cmd/internal/cli"
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

// Faults returns the variables that are wrong. The SDK would ignore them, log their values, or send
// no traces or all of them. It returns none if traces are off.
func Faults(env func(string) string) cli.Faults {
	if !On(env) {
		return nil
	}
	_, faults := read(env)
	return faults
}

// collector returns where and how the environment says to send spans.
func collector(env func(string) string, version string) (otlp.Config, error) {
	c, faults := read(env)
	if len(faults) == 0 && c.URL == nil {
		return c, errors.New("no endpoint is set")
	}
	header := http.Header{"User-Agent": {"commerce/" + version}}
	maps.Copy(header, c.Header)
	c.Header = header
	return c, faults.Err()
}

// read returns what the environment says about the collector, and the variables that are wrong.
// Of the exporter's variables, those for traces alone take precedence.
func read(env func(string) string) (otlp.Config, cli.Faults) {
	v := &variables{env: env}
	v.check("OTEL_TRACES_EXPORTER", oneOf("otlp"))
	v.check("OTEL_TRACES_SAMPLER", oneOf("always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"))
	if strings.HasSuffix(strings.ToLower(v.value("OTEL_TRACES_SAMPLER")), "traceidratio") {
		v.check("OTEL_TRACES_SAMPLER_ARG", ratio)
	}
	v.check("OTEL_RESOURCE_ATTRIBUTES", pairs)
	milliseconds, number := 10_000, 0
	for _, name := range []string{"SCHEDULE_DELAY", "EXPORT_TIMEOUT", "MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE"} {
		parse(v, "OTEL_BSP_"+name, parseCount, &number) // the SDK reads it again
	}
	const general, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	var c otlp.Config
	var files tls.Config
	for _, prefix := range []string{general, traces} {
		parse(v, prefix+"ENDPOINT", parseURL, &c.URL)
		if prefix == general && c.URL != nil { // it is a base
			c.URL = c.URL.JoinPath("v1/traces")
		}
	}
	if c.URL != nil && c.URL.Scheme != "https" {
		// The operator expects these files to protect the spans.
		unused := func(string) error { return errors.New("is set, but the collector's URL is not https") }
		for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
			v.check(general+name, unused)
			v.check(traces+name, unused)
		}
	}
	for _, prefix := range []string{general, traces} {
		v.check(prefix+"PROTOCOL", protocol)
		parse(v, prefix+"HEADERS", parseHeaders, &c.Header)
		parse(v, prefix+"TIMEOUT", parseCount, &milliseconds)
		parse(v, prefix+"COMPRESSION", parseCompression, &c.Gzip)
		parse(v, prefix+"CERTIFICATE", readAuthorities, &files.RootCAs)
		v.readClientCertificate(prefix, &files.Certificates)
	}
	c.Timeout = time.Duration(milliseconds) * time.Millisecond
	if files.RootCAs != nil || files.Certificates != nil {
		c.TLS = &files
	}
	return c, v.faults
}

type variables struct {
	env    func(string) string
	faults cli.Faults
}

func (v *variables) value(name string) string { return strings.TrimSpace(v.env(name)) }

func (v *variables) check(name string, fault func(string) error) {
	if v.value(name) != "" {
		v.faults.Add(name, fault(v.env(name)))
	}
}

// parse stores the value of a variable that is set. With a fault, it stores the zero value.
func parse[T any](v *variables, name string, parse func(string) (T, error), to *T) {
	v.check(name, func(value string) (err error) {
		*to, err = parse(value)
		return err
	})
}

func readAuthorities(path string) (*x509.CertPool, error) {
	pem, err := readFile(path)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, errors.New("has no certificate in PEM form")
	}
	return authorities, nil
}

func readFile(path string) ([]byte, error) { return connect.ReadRegular(strings.TrimSpace(path)) }

// readClientCertificate reads the files of the client's certificate and key, if there are any.
func (v *variables) readClientCertificate(prefix string, to *[]tls.Certificate) {
	var cert, key []byte
	certName, keyName := prefix+"CLIENT_CERTIFICATE", prefix+"CLIENT_KEY"
	switch {
	case v.value(certName) == "" && v.value(keyName) == "":
		return
	case v.value(certName) == "":
		v.faults.Add(certName, errors.New("is required with "+keyName))
	case v.value(keyName) == "":
		v.faults.Add(keyName, errors.New("is required with "+certName))
	default:
		parse(v, certName, readFile, &cert)
		parse(v, keyName, readFile, &key)
		if cert != nil && key != nil {
			pair, err := tls.X509KeyPair(cert, key)
			v.faults.Add(certName, err)
			*to = []tls.Certificate{pair}
		}
	}
}

// These functions read values as the SDK does: it ignores space around some, but not numbers.

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

func parseCompression(value string) (gzip bool, err error) {
	return strings.EqualFold(strings.TrimSpace(value), "gzip"), oneOf("gzip", "none")(value)
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
