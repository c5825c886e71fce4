package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"commerce/deploy/assert"
)

type collector struct {
	URL string

	mu       sync.Mutex
	raw      []byte // all bodies
	spans    []sentSpan
	resource map[string]string
}

type sentSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Start                               int64 `json:"startTimeUnixNano,string"`
	End                                 int64 `json:"endTimeUnixNano,string"`
	Status                              struct{ Code int }
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{resource: map[string]string{}}
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, unread := io.ReadAll(r.Body)
		var batch struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []struct {
						Key   string
						Value struct{ StringValue string }
					}
				}
				ScopeSpans []struct{ Spans []sentSpan }
			}
		}
		err := json.Unmarshal(body, &batch)
		assert.That(t, unread == nil && err == nil && r.URL.Path == "/v1/traces", "%s: %v, %v", r.URL.Path, unread, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw = append(c.raw, body...)
		for _, r := range batch.ResourceSpans {
			for _, a := range r.Resource.Attributes {
				c.resource[a.Key] = a.Value.StringValue
			}
			for _, s := range r.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	t.Cleanup(web.Close)
	c.URL = web.URL
	return c
}

// shows reports whether a trace blames a dependency: a span of a call to it, whose name begins
// with call, failed or took most of the request's time.
func (c *collector) shows(traceID, call string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var request, longest time.Duration
	failed := false
	for _, s := range c.spans {
		if s.TraceID != traceID {
			continue
		}
		took := time.Duration(s.End - s.Start)
		switch {
		case s.ParentSpanID == "":
			request = took
		case strings.HasPrefix(s.Name, call):
			failed = failed || s.Status.Code == 2 // an error
			longest = max(longest, took)
		}
	}
	return request > 0 && (failed || longest > request/2)
}

// has reports whether a span, whose name begins with name, is a part of a span of the given
// name; "" for a span of a request. The caller holds mu.
func (c *collector) has(name, parent string) bool {
	return slices.ContainsFunc(c.spans, func(s sentSpan) bool {
		if !strings.HasPrefix(s.Name, name) {
			return false
		}
		return parent == "" && s.ParentSpanID == "" || slices.ContainsFunc(c.spans, func(p sentSpan) bool {
			return p.Name == parent && p.SpanID == s.ParentSpanID
		})
	})
}

// The collector gets all spans before the process ends, although none was due before.
func TestServe_SendsTracesToACollector(t *testing.T) {
	t.Parallel()
	c, database := startCollector(t), seeded(t)
	api := storeToken(t, database)
	serve := startServe(t, database, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=600000",
		"OTEL_SERVICE_NAME=carts", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	token := serve.mustCall(t, "", "POST", "/cart/add", `{"product_id":1,"notice":"planted"}`).Data.CartToken
	serve.mustCall(t, token, "GET", "/cart?planted=1", "")
	status, _ := serve.asStoreServed(t, api, "/subscriptions?customerEmail=planted@example.com")
	assert.That(t, status == http.StatusOK, "subscriptions: status %d", status)
	page := assert.Must(request(t.Context(), http.DefaultClient, "GET", serve.admin+"/metrics", "", "Accept", "application/openmetrics-text"))(t).Body
	exemplar := regexp.MustCompile(`(?m)^commerce_http_request_duration_seconds_bucket\{.*route="/cart/add".*\} \d+ # \{trace_id="(\w+)"\}`).FindStringSubmatch(page)
	assert.Require(t, exemplar != nil, "no exemplar: %s", page)
	serve.end(t)

	c.mu.Lock()
	defer c.mu.Unlock()
	assert.That(t, slices.ContainsFunc(c.spans, func(s sentSpan) bool { return s.TraceID == exemplar[1] }),
		"no trace has the id of the exemplar, %s", exemplar[1])
	for _, want := range []struct{ name, parent string }{
		{"POST /cart/add", ""},
		{"GET /cart", ""},
		{"GET /subscriptions", ""},
		{"wait for the catalog", "POST /cart/add"},
		{"redis commit", "POST /cart/add"},
		{"redis ", "GET /cart"},
		{"postgres subscriptions", "GET /subscriptions"},
		{"postgres products", "POST /cart/add"}, // loads the catalog
	} {
		assert.That(t, c.has(want.name, want.parent), "no span %q below %q", want.name, want.parent)
	}
	assert.That(t, c.resource["service.name"] == "carts" && c.resource["deployment.environment.name"] == "test" &&
		c.resource["service.version"] != "", "resource %v", c.resource)
	_, secret, _ := strings.Cut(api, "|")
	for _, text := range []string{"planted", token, secret, "pk_demo"} {
		assert.That(t, !bytes.Contains(c.raw, []byte(text)), "%q is in the traces", text)
	}
}

// A collector that hangs delays neither requests nor, for longer than flushPeriod, the end.
func TestServe_DoesNotWaitForACollector(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	t.Cleanup(web.Close)
	t.Cleanup(func() { close(silent) })
	for name, url := range map[string]string{"hangs": web.URL, "is down": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			serve := startServe(t, seeded(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_BSP_SCHEDULE_DELAY=1")
			for range 20 {
				serve.mustCall(t, "", "GET", "/cart", "")
			}
			began := time.Now()
			serve.end(t)
			assert.That(t, time.Since(began) <= gracePeriod, "the end took %v", time.Since(began))
		})
	}
}

func TestTraces_AreOffUnlessAnEndpointIsSet(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL
	for name, settings := range map[string][]string{
		"no endpoint":  {"OTEL_TRACES_SAMPLER=always_on", "OTEL_SERVICE_NAME=carts"},
		"SDK disabled": {endpoint, "OTEL_SDK_DISABLED=true"},
		"no exporter":  {endpoint, "OTEL_TRACES_EXPORTER=none"},
		"not sampled":  {endpoint, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0"},
	} {
		d := start(t, "demo", settings...)
		d.send(t, "GET", "/cart", "", "X-Public-Key", "pk_demo")
		d.end(t)
		c.mu.Lock()
		assert.Equal(t, len(c.spans), 0, "%s: spans", name)
		c.mu.Unlock()
	}
}

func (r *running) metric(t *testing.T, series string) float64 {
	t.Helper()
	for line := range strings.Lines(r.send(t, "GET", r.admin+"/metrics", "").Body) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			return assert.Must(strconv.ParseFloat(strings.TrimSpace(text), 64))(t)
		}
	}
	return 0
}

// browse makes each kind of call once, so that each metric has a value.
func (r *running) browse(t *testing.T, apiToken string) {
	t.Helper()
	cart := r.mustCall(t, "", "POST", "/cart/add", `{"product_id":1}`).Data.CartToken
	for _, c := range []struct{ method, path, body, token string }{
		{"POST", "/cart/add", `{"product_id":3}`, ""},         // refused
		{"POST", "/cart/add", `{"product_id":2,"qty":3}`, ""}, // the rest of the stock: a warning
		{"GET", "/cart/validate", "", ""},
		{"POST", "/cart/coupon", `{"coupon":"OLD"}`, ""},
		{"GET", "/cart", "", "not.a.token"},
		{"GET", "/subscriptions", "", apiToken},
		{"GET", "/subscriptions/1", "", apiToken},
		{"GET", "/subscriptions/summary", "", apiToken},
		{"GET", "/subscriptions/metrics", "", apiToken},
		{"GET", "/subscriptions/changes", "", apiToken},
	} {
		authorization := ""
		if c.token != "" {
			authorization = "Bearer " + c.token
		}
		r.send(t, c.method, c.path, c.body, "X-Public-Key", "pk_demo", "X-Cart-Token", cart, "Authorization", authorization)
	}
}

func documented(t *testing.T) []string {
	t.Helper()
	_, section, _ := strings.Cut(source(t, "docs/operations.md"), "\n### Metrics\n")
	section, _, _ = strings.Cut(section, "\n#")
	return slices.Sorted(captured("`(commerce_[a-z_]+)[{`]", section))
}

func captured(pattern, text string) func(yield func(string) bool) {
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return maps.Keys(found)
}

func hostOf(t *testing.T, rawURL string) string { t.Helper(); return parsed(t, rawURL).Host }

func parsed(t *testing.T, rawURL string) *url.URL {
	t.Helper()
	return assert.Must(url.Parse(rawURL))(t)
}

func TestMetrics_OfServeAreThoseInTheDocumentation(t *testing.T) {
	t.Parallel()
	database := seeded(t)
	serve := startServe(t, database, "DATABASE_REPLICA_URL="+database)
	eventually(t, func() string {
		if state := serve.ready(t).Checks["replica "+hostOf(t, database)]; state != "primary" {
			return "the state of the primary as a replica is " + state
		}
		return ""
	})
	serve.browse(t, storeToken(t, database))
	serve.log.wait(t, 0, "commerce check") // sets its metrics first
	page := serve.send(t, "GET", serve.admin+"/metrics", "").Body
	exposed := slices.Sorted(captured(`(?m)^# TYPE (commerce_[a-z_]+) `, page))
	assert.Equal(t, exposed, documented(t), "docs/operations.md lists other metrics than serve has (-docs +serve)")
	statements := slices.Sorted(captured(`commerce_postgres_statement_duration_seconds_count\{statement="([^"]*)"`, page))
	assert.That(t, !slices.Contains(statements, "other") && len(statements) >= 10,
		"statements without a name, or too few: %q", statements)
}
