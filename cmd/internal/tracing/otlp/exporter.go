// Package otlp sends spans to a collector as JSON over HTTP, the form http/json of OpenTelemetry's
// protocol. OpenTelemetry's own exporter, otlptracehttp, imports gRPC: the program would have 46 MB
// instead of 31.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"commerce/auth/cause"
)

// A batch is retried for a short time only. That logs an outage soon, and drops fewer of the
// later spans that wait in the queue.
const (
	firstPause  = time.Second
	maxPause    = 5 * time.Second
	retryPeriod = 10 * time.Second
)

const maxResponse = 64 << 10

type Config struct {
	URL     *url.URL
	Header  http.Header   // of each request
	Timeout time.Duration // of each request
	Gzip    bool
	TLS     *tls.Config // nil: the default
}

// Exporter sends spans. It implements sdk.SpanExporter.
type Exporter struct {
	c      Config
	name   string // for errors: no credential, which the URL may have
	client *http.Client
	open   context.Context // ends with Shutdown
	stop   context.CancelFunc
}

// New returns an exporter. It does not connect to the collector.
func New(c Config) *Exporter {
	c.Header = c.Header.Clone()
	c.Header.Set("Content-Type", "application/json")
	if c.Gzip {
		c.Header.Set("Content-Encoding", "gzip")
	}
	e := &Exporter{c: c, name: "collector " + c.URL.Host}
	e.client = &http.Client{
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			DialContext:       (&net.Dialer{Timeout: c.Timeout}).DialContext, // dials outlive their request
			TLSClientConfig:   c.TLS,
			ForceAttemptHTTP2: true,
			IdleConnTimeout:   90 * time.Second,
		},
		// A redirect could send the headers, which may have a key, to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.open, e.stop = context.WithCancel(context.Background())
	return e
}

// Shutdown implements sdk.SpanExporter. It ends the export in progress.
func (e *Exporter) Shutdown(context.Context) error {
	e.stop()
	e.client.CloseIdleConnections()
	return nil
}

// ExportSpans implements sdk.SpanExporter. While the collector cannot be reached or is
// overloaded, it tries again for retryPeriod.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := e.encode(spans)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.open, cancel)()
	end := time.Now().Add(retryPeriod)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := e.post(ctx, body)
		failed, again := errors.AsType[*temporary](err)
		if !again {
			return err
		}
		wait := max(failed.after, pause/2+rand.N(pause)) // instances that failed together do not retry together
		if time.Now().Add(wait).After(end) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

func (e *Exporter) encode(spans []sdk.ReadOnlySpan) ([]byte, error) {
	body, err := json.Marshal(newMessage(spans))
	if err != nil || !e.c.Gzip {
		return body, err
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, err = w.Write(body)
	err = errors.Join(err, w.Close())
	return small.Bytes(), err
}

type temporary struct {
	error
	after time.Duration // the collector asks to wait this long
}

func (t *temporary) Unwrap() error { return t.error }

func (e *Exporter) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, e.c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.c.URL.String(), bytes.NewReader(body))
	if err != nil {
		return cause.WithoutURL(err)
	}
	request.Header = e.c.Header.Clone()
	began := time.Now()
	response, err := e.client.Do(request)
	if err != nil {
		return cause.Of(e.name, began, &temporary{error: cause.WithoutURL(err)})
	}
	defer response.Body.Close()
	return cause.Of(e.name, began, outcome(response))
}

// overloaded are the statuses after which OTLP lets clients try again.
var overloaded = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// outcome returns what is wrong, without the response's text, which could repeat a credential.
func outcome(r *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxResponse)) // the status is known; also frees the connection
	switch {
	case slices.Contains(overloaded, r.StatusCode):
		return &temporary{fmt.Errorf("status %d", r.StatusCode), retryAfter(r.Header.Get("Retry-After"))}
	case r.StatusCode/100 != 2:
		return fmt.Errorf("status %d", r.StatusCode)
	}
	var accepted struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"` // a string or a number
		} `json:"partialSuccess"`
	}
	_ = json.Unmarshal(body, &accepted) // many servers send no JSON
	if n, err := accepted.PartialSuccess.RejectedSpans.Int64(); err == nil && n > 0 {
		return fmt.Errorf("it rejected %d spans", n)
	}
	return nil
}

// retryAfter reads a number of seconds or a time. It returns 0 for neither.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return time.Until(at)
	}
	return 0
}
