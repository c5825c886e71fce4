package tracing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"commerce/cmd/internal/tracing/otlp"
	"commerce/deploy/assert"
)

func TestCollector_IsWhatTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	type config struct {
		URL     string
		Header  http.Header
		Timeout time.Duration
		Gzip    bool
	}
	const (
		general = "OTEL_EXPORTER_OTLP_"
		traces  = "OTEL_EXPORTER_OTLP_TRACES_"
	)
	for settings, edit := range map[string]func(*config){
		general + "ENDPOINT=http://c:4318":                                 func(*config) {},
		general + "ENDPOINT=http://c:4318/":                                func(*config) {},
		general + "ENDPOINT=https://c/otlp/?a=b":                           func(c *config) { c.URL = "https://c/otlp/v1/traces?a=b" },
		traces + "ENDPOINT=http://d/in?a=b":                                func(c *config) { c.URL = "http://d/in?a=b" },
		traces + "ENDPOINT=http://d " + general + "ENDPOINT=http://c:4318": func(c *config) { c.URL = "http://d" },

		general + "ENDPOINT=http://c:4318 " + general + "HEADERS=api-key=a%2Cb%20c,x=1=2": func(c *config) {
			c.Header["Api-Key"], c.Header["X"] = []string{"a,b c"}, []string{"1=2"}
		},
		general + "ENDPOINT=http://c:4318 " + general + "HEADERS=a=1,b=1 " + traces + "HEADERS=a=2": func(c *config) {
			c.Header["A"] = []string{"2"}
		},
		general + "ENDPOINT=http://c:4318 " + general + "HEADERS=user-agent=shop": func(c *config) {
			c.Header["User-Agent"] = []string{"shop"}
		},
		general + "ENDPOINT=http://c:4318 " + general + "TIMEOUT=1500": func(c *config) { c.Timeout = 1500 * time.Millisecond },
		general + "ENDPOINT=http://c:4318 " + general + "TIMEOUT=1500 " + traces + "TIMEOUT=2000": func(c *config) {
			c.Timeout = 2 * time.Second
		},
		general + "ENDPOINT=http://c:4318 " + general + "COMPRESSION=gzip":                                func(c *config) { c.Gzip = true },
		general + "ENDPOINT=http://c:4318 " + general + "COMPRESSION=gzip " + traces + "COMPRESSION=none": func(*config) {},
	} {
		want := config{URL: "http://c:4318/v1/traces", Header: http.Header{"User-Agent": {"commerce/1.2"}}, Timeout: 10 * time.Second}
		edit(&want)
		c, err := collector(environment(settings), "1.2")
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		diff := cmp.Diff(want, config{c.URL.String(), c.Header, c.Timeout, c.Gzip})
		assert.That(t, diff == "" && c.TLS == nil, "%s: TLS %v, %s", settings, c.TLS, diff)
	}
}

// Faults finds most of these before. Files can change meanwhile.
func TestCollector_RefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	_, pemFile, _ := issue(t)
	for settings, want := range map[string]string{
		"":                                         "no endpoint is set",
		"ENDPOINT=hunter2@c:1":                     "OTEL_EXPORTER_OTLP_ENDPOINT: must be",
		"ENDPOINT=http://c HEADERS=hunter2":        "OTEL_EXPORTER_OTLP_HEADERS: must be",
		"ENDPOINT=http://c TRACES_TIMEOUT=10s":     "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: \"10s\"",
		"ENDPOINT=http://c COMPRESSION=zstd":       "OTEL_EXPORTER_OTLP_COMPRESSION: \"zstd\"",
		"ENDPOINT=https://c CERTIFICATE=/none":     "OTEL_EXPORTER_OTLP_CERTIFICATE: ",
		"ENDPOINT=https://c CLIENT_KEY=" + pemFile: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: is required",
	} {
		var named []string
		for _, pair := range strings.Fields(settings) {
			named = append(named, "OTEL_EXPORTER_OTLP_"+pair)
		}
		_, err := collector(environment(strings.Join(named, " ")), "1.2")
		assert.That(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "hunter2"),
			"%s: %v, want %q", settings, err, want)
	}
}

// issue returns a certificate of 127.0.0.1 that signs itself, and its files.
func issue(t *testing.T) (pair tls.Certificate, certificate, key string) {
	t.Helper()
	private := assert.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := assert.Must(x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private))(t)
	secret := assert.Must(x509.MarshalPKCS8PrivateKey(private))(t)
	certificate, key = writePEM(t, "CERTIFICATE", der), writePEM(t, "PRIVATE KEY", secret)
	pair = assert.Must(tls.LoadX509KeyPair(certificate, key))(t)
	return pair, certificate, key
}

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.pem")
	assert.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

func TestCollector_AndTheServiceAuthenticateEachOther(t *testing.T) {
	t.Parallel()
	server, serverFile, _ := issue(t)
	client, clientFile, keyFile := issue(t)
	_, otherFile, otherKey := issue(t)
	known := x509.NewCertPool()
	known.AddCert(client.Leaf)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	web.TLS = &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.StartTLS()
	t.Cleanup(web.Close)

	set := func(pairs ...string) otlp.Config {
		c := assert.Must(collector(environment(strings.Join(append(pairs, "OTEL_EXPORTER_OTLP_ENDPOINT="+web.URL), " ")), "1.2"))(t)
		return c
	}
	authority, certificate, key := "OTEL_EXPORTER_OTLP_CERTIFICATE=", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=", "OTEL_EXPORTER_OTLP_CLIENT_KEY="
	traces := strings.NewReplacer("OTLP_", "OTLP_TRACES_")
	for name, c := range map[string]otlp.Config{
		"for all signals": set(authority+serverFile, certificate+clientFile, key+keyFile),
		"for traces": set(authority+otherFile, traces.Replace(authority)+serverFile,
			certificate+otherFile, key+otherKey, traces.Replace(certificate)+clientFile, traces.Replace(key)+keyFile),
	} {
		e := otlp.New(c)
		assert.Succeeds(t, e.ExportSpans(t.Context(), tracetest.SpanStubs{{Name: "GET /cart"}}.Snapshots()), "%s", name)
		e.Shutdown(t.Context())
	}
	// The exporter would retry these.
	for name, c := range map[string]otlp.Config{
		"no authority":       set(certificate+clientFile, key+keyFile),
		"another authority":  set(authority+otherFile, certificate+clientFile, key+keyFile),
		"no certificate":     set(authority + serverFile),
		"an unknown one":     set(authority+serverFile, certificate+otherFile, key+otherKey),
		"no settings at all": set(),
	} {
		transport := &http.Transport{TLSClientConfig: c.TLS}
		response, err := (&http.Client{Transport: transport}).Post(web.URL, "application/json", nil)
		if err == nil {
			response.Body.Close()
			t.Errorf("%s: status %d", name, response.StatusCode)
		} else if !strings.Contains(err.Error(), "tls: ") {
			t.Errorf("%s: %v", name, err)
		}
		transport.CloseIdleConnections()
	}
}
