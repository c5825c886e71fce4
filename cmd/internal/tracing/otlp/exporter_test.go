package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"commerce/deploy/assert"
)

func exporterTo(t *testing.T, rawURL string, edits ...func(*Config)) *Exporter {
	t.Helper()
	u := assert.Must(url.Parse(rawURL))(t)
	c := Config{URL: u, Header: http.Header{"User-Agent": {"commerce/test"}}, Timeout: 10 * time.Second}
	for _, edit := range edits {
		edit(&c)
	}
	e := New(c)
	t.Cleanup(func() { e.Shutdown(context.Background()) })
	return e
}

var batch = snapshots(tracetest.SpanStub{Name: "GET /cart"})

// script is a collector with an answer for each request. The last one repeats.
type script struct {
	answers  []answer
	requests int
}

type answer func(*http.Request) (*http.Response, error)

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	return s.answers[min(s.requests, len(s.answers))-1](r)
}

func exporterWith(t *testing.T, answers ...answer) (*Exporter, *script) {
	t.Helper()
	e, collector := exporterTo(t, "http://c:4318/v1/traces"), &script{answers: answers}
	e.client.Transport = collector
	return e, collector
}

func replies(code int, header ...string) answer { return says(code, "", header...) }

// says returns an answer with a body and with headers, which are names and values.
func says(code int, body string, header ...string) answer {
	return func(r *http.Request) (*http.Response, error) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func refused(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// The clock of these tests is not the real one, and begins at a full second.
func TestExporter_RetriesWhatMaySucceedLater(t *testing.T) {
	t.Parallel()
	second := time.Second
	for name, c := range map[string]struct {
		answers  []answer
		requests int
		min, max time.Duration
		err      string
	}{
		"success":         {[]answer{replies(200)}, 1, 0, 0, ""},
		"no content":      {[]answer{replies(204)}, 1, 0, 0, ""},
		"overloaded":      {[]answer{replies(503), replies(200)}, 2, second / 2, 3 * second / 2, ""},
		"all that OTLP":   {[]answer{replies(429), replies(502), replies(504), replies(200)}, 4, 7 * second / 2, 10 * second, ""},
		"refused":         {[]answer{refused, replies(200)}, 2, second / 2, 3 * second / 2, ""},
		"then wrong":      {[]answer{refused, replies(400)}, 2, second / 2, 3 * second / 2, "status 400"},
		"Retry-After":     {[]answer{replies(429, "Retry-After", "3"), replies(200)}, 2, 3 * second, 3 * second, ""},
		"Retry-After now": {[]answer{replies(429, "Retry-After", "0"), replies(200)}, 2, second / 2, 3 * second / 2, ""},
		"until a date":    {[]answer{replies(503, "Retry-After", "Sat, 01 Jan 2000 00:00:04 GMT"), replies(200)}, 2, 4 * second, 4 * second, ""},
		"in an hour":      {[]answer{replies(503, "Retry-After", "3600"), replies(200)}, 1, 0, 0, "status 503"},
		"some day":        {[]answer{replies(503, "Retry-After", "4294967295"), replies(200)}, 1, 0, 0, "status 503"},
		"bad request":     {[]answer{replies(400), replies(200)}, 1, 0, 0, "status 400"},
		"no credential":   {[]answer{replies(401), replies(200)}, 1, 0, 0, "status 401"},
		"wrong path":      {[]answer{replies(404), replies(200)}, 1, 0, 0, "status 404"},
		"broken":          {[]answer{replies(500), replies(200)}, 1, 0, 0, "status 500"},
		"hangs":           {[]answer{hang, replies(200)}, 1, 10 * second, 10 * second, "no answer after 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, collector := exporterWith(t, c.answers...)
				began := time.Now()
				err := e.ExportSpans(t.Context(), batch)
				took := time.Since(began)
				assert.That(t, collector.requests == c.requests && took >= c.min && took <= c.max,
					"%d requests in %v, want %d in %v to %v", collector.requests, took, c.requests, c.min, c.max)
				assert.That(t, (c.err != "" || err == nil) && (c.err == "" || !(err == nil || err.Error() != "collector c:4318: "+c.err)),
					"error %v, want %q", err, c.err)
			})
		})
	}
}

func TestExporter_GivesUpAfterTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, collector := exporterWith(t, replies(503))
		began := time.Now()
		err := e.ExportSpans(t.Context(), batch)
		if took := time.Since(began); err == nil || took > 10*time.Second || collector.requests < 3 {
			t.Errorf("%d requests in %v, and %v", collector.requests, took, err)
		}
	})
}

func TestExporter_StopsAtOnce(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]answer{"in a pause": {refused}, "in a request": {hang}} {
		for by, stop := range map[string]func(*Exporter, context.CancelFunc){
			"Shutdown":    func(e *Exporter, _ context.CancelFunc) { e.Shutdown(context.Background()) },
			"its context": func(_ *Exporter, cancel context.CancelFunc) { cancel() },
		} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e, collector := exporterWith(t, answers...)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					began := time.Now()
					time.AfterFunc(300*time.Millisecond, func() { stop(e, cancel) })
					if err := e.ExportSpans(ctx, batch); err == nil || time.Since(began) != 300*time.Millisecond || collector.requests != 1 {
						t.Errorf("%d requests in %v, and %v", collector.requests, time.Since(began), err)
					}
				})
			})
		}
	}
}

func TestExporter_ReportsRejectedSpans(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"hunter2"}}`: "collector c:4318: it rejected 2 spans",
		`{"partialSuccess":{"rejectedSpans":2}}`:                            "collector c:4318: it rejected 2 spans",
		`{"partialSuccess":{"rejectedSpans":"0","errorMessage":"careful"}}`: "<nil>",
		`{"partialSuccess":null}`:                                           "<nil>",
		`{}`:                                                                "<nil>",
		``:                                                                  "<nil>",
		`accepted`:                                                          "<nil>",
		`{"partialSuccess":{"rejectedSpans":"many"}}`:                      "<nil>",
		`{"partialSuccess":{"rejectedSpans":` + strings.Repeat("2", 1<<20): "<nil>",
	} {
		e, _ := exporterWith(t, says(http.StatusOK, body))
		assert.Equal(t, fmt.Sprint(e.ExportSpans(t.Context(), batch)), want, "%.80s", body)
	}
}

// endless is a body that counts what is read of it.
type endless struct {
	read   int
	closed bool
}

func (b *endless) Read(p []byte) (int, error) {
	b.read += len(p)
	return len(p), nil
}

func (b *endless) Close() error {
	b.closed = true
	return nil
}

func TestExporter_ReadsLittleOfAResponse(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusOK, http.StatusBadRequest} {
		body := &endless{}
		e, _ := exporterWith(t, func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Body: body, Request: r}, nil
		})
		if err := e.ExportSpans(t.Context(), batch); (err == nil) != (code == http.StatusOK) || body.read > maxResponse || !body.closed {
			t.Errorf("status %d: %v, after %d bytes, closed %v", code, err, body.read, body.closed)
		}
	}
}

func TestExporter_SendsNothingForNoSpans(t *testing.T) {
	t.Parallel()
	e := exporterTo(t, "http://127.0.0.1:1")
	err := e.ExportSpans(t.Context(), nil)
	assert.That(t, err == nil, "%v", err)
}

type received struct {
	*http.Request
	body []byte
}

// listen starts a server that passes on its requests, and then answers them.
func listen(t *testing.T, answer http.HandlerFunc) (serverURL string, requests chan received) {
	t.Helper()
	requests = make(chan received, 10)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.That(t, err == nil, "%v", err)
		requests <- received{r, body}
		answer(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL, requests
}

func accept(http.ResponseWriter, *http.Request) {}

func TestExporter_PostsToItsURLWithItsHeaders(t *testing.T) {
	t.Parallel()
	serverURL, requests := listen(t, accept)
	e := exporterTo(t, serverURL+"/otlp/v1/traces?tenant=1", func(c *Config) {
		c.Header.Set("Api-Key", "hunter2")
		c.Header.Set("Content-Type", "text/plain")
	})
	assert.NoError(t, e.ExportSpans(t.Context(), batch))
	r := <-requests
	assert.That(t, r.Method == http.MethodPost && r.RequestURI == "/otlp/v1/traces?tenant=1" && r.ContentLength == int64(len(r.body)),
		"%s %s with %d of %d bytes", r.Method, r.RequestURI, r.ContentLength, len(r.body))
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Content-Encoding": "", "User-Agent": "commerce/test", "Api-Key": "hunter2",
	} {
		assert.Equal(t, r.Header.Get(name), want, "%s", name)
	}
	assert.Equal(t, decoded(t, r.body).ResourceSpans[0].ScopeSpans[0].Spans[0].Name, "GET /cart", "the span's name")
}

func TestExporter_Compresses(t *testing.T) {
	t.Parallel()
	serverURL, requests := listen(t, accept)
	e := exporterTo(t, serverURL, func(c *Config) { c.Gzip = true })
	many := snapshots(make(tracetest.SpanStubs, 100)...)
	assert.NoError(t, e.ExportSpans(t.Context(), many))
	r := <-requests
	plain, err := gzip.NewReader(bytes.NewReader(r.body))
	assert.Require(t, err == nil && r.Header.Get("Content-Encoding") == "gzip", "%v with headers %v", err, r.Header)
	body, err := io.ReadAll(plain)
	assert.That(t, err == nil && len(body) >= 10*len(r.body), "%d bytes from %d, and %v", len(body), len(r.body), err)
	assert.Equal(t, len(decoded(t, body).ResourceSpans[0].ScopeSpans[0].Spans), len(many), "spans")
}

// Each retry sends the whole body again.
func TestExporter_RepeatsTheBody(t *testing.T) {
	t.Parallel()
	var failed atomic.Bool
	serverURL, requests := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		if !failed.Swap(true) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	assert.NoError(t, exporterTo(t, serverURL).ExportSpans(t.Context(), batch))
	first, second := <-requests, <-requests
	assert.That(t, bytes.Equal(first.body, second.body) && len(first.body) != 0, "sent %q and then %q", first.body, second.body)
}

func TestExporter_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	elsewhere, leaked := listen(t, accept)
	serverURL, _ := listen(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusPermanentRedirect)
	})
	err := exporterTo(t, serverURL).ExportSpans(t.Context(), batch)
	assert.That(t, err != nil && strings.HasSuffix(err.Error(), ": status 308") && len(leaked) <= 0,
		"%v, and %d requests elsewhere", err, len(leaked))
}

func TestExporter_KeepsCredentialsOutOfErrors(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.RequestURI+r.Header.Get("Authorization"), http.StatusBadRequest)
	}
	rejecting, _ := listen(t, echo)
	breaking, _ := listen(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, serverURL := range map[string]string{"rejects": rejecting, "breaks": breaking, "is down": "http://127.0.0.1:1"} {
		host := strings.TrimPrefix(serverURL, "http://")
		e := exporterTo(t, "http://user:hunter2@"+host+"/hunter2?key=hunter2", func(c *Config) {
			c.Header.Set("Authorization", "hunter2")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // no retry
		err := e.ExportSpans(ctx, batch)
		cancel()
		assert.That(t, err != nil && !strings.Contains(err.Error(), "hunter2") && strings.HasPrefix(err.Error(), "collector "+host+": "),
			"%s: %v", name, err)
		failed, ok := errors.AsType[*url.Error](err)
		assert.That(t, !ok, "%s: the error contains %v", name, failed)
	}
}
