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
	"strings"
	"time"

	"commerce/cmd/internal/tracing/otlp"
	"commerce/deploy/connect"
)

// prefixes of the exporter's variables. The later, for traces alone, takes precedence.
var prefixes = []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"}

// collector returns where and how the environment says to send spans.
func collector(env func(string) string, version string) (otlp.Config, error) {
	u, noURL := collectorURL(env)
	own, noHeaders := setting(env, "HEADERS", parseHeaders, nil)
	ms, noTimeout := setting(env, "TIMEOUT", parseCount, 10_000)
	gzip, noCompression := setting(env, "COMPRESSION", parseCompression, false)
	secured, noTLS := collectorTLS(env)
	if err := errors.Join(noURL, noHeaders, noTimeout, noCompression, noTLS); err != nil {
		return otlp.Config{}, err
	}
	header := http.Header{"User-Agent": {"commerce/" + version}}
	maps.Copy(header, own)
	return otlp.Config{URL: u, Header: header, Timeout: time.Duration(ms) * time.Millisecond, Gzip: gzip, TLS: secured}, nil
}

// setting returns the parsed value of a variable of the exporter.
func setting[T any](env func(string) string, name string, parse func(string) (T, error), preset T) (T, error) {
	for _, prefix := range slices.Backward(prefixes) {
		if value := env(prefix + name); strings.TrimSpace(value) != "" {
			parsed, err := parse(value)
			if err != nil {
				err = fmt.Errorf("%s%s: %w", prefix, name, err)
			}
			return parsed, err
		}
	}
	return preset, nil
}

// collectorURL returns the whole URL. Only that of the variable for all signals is a base.
func collectorURL(env func(string) string) (*url.URL, error) {
	u, err := setting(env, "ENDPOINT", parseURL, nil)
	switch {
	case err != nil:
		return nil, err
	case u == nil:
		return nil, errors.New("no endpoint is set")
	case strings.TrimSpace(env(prefixes[1]+"ENDPOINT")) == "":
		u = u.JoinPath("v1/traces")
	}
	return u, nil
}

// collectorTLS returns nil if the environment names no files.
func collectorTLS(env func(string) string) (*tls.Config, error) {
	authorities, err := setting(env, "CERTIFICATE", readAuthorities, nil)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{RootCAs: authorities}
	for _, prefix := range prefixes {
		pair, wrong, err := clientCertificates(env, prefix)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", wrong, err)
		}
		if pair != nil {
			c.Certificates = pair
		}
	}
	if c.RootCAs == nil && c.Certificates == nil {
		return nil, nil
	}
	return c, nil
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
