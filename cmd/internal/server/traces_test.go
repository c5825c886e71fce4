package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/tracing"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type recorder struct {
	traces *tracing.Traces
	mu     sync.Mutex
	spans  []sdk.ReadOnlySpan
}

func (r *recorder) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, spans...)
	return nil
}

func (r *recorder) Shutdown(context.Context) error { return nil }

func newRecorder(t testing.TB) *recorder {
	t.Helper()
	r := &recorder{}
	r.traces = assert.Must(tracing.New(t.Context(), tracing.Config{Version: "test", Exporter: r}))(t)
	t.Cleanup(func() { r.traces.Close(context.Background()) })
	return r
}

// on lets a shop on a Redis record its requests and commands, behind a proxy.
func (r *recorder) on(t testing.TB, redisURL string) func(*server.Parts) {
	return func(p *server.Parts) {
		p.Redis.Client = dialRedis(t, asService(t, redisURL), ephemeral.PatientRedis)
		p.Traces, p.TrustedProxies = r.traces, []string{"127.0.0.1"}
	}
}

func traced(t *testing.T, redisURL string, edits ...func(*server.Parts)) (*shop, *recorder) {
	t.Helper()
	t.Parallel()
	r := newRecorder(t)
	return openShop(t, redisURL, append([]func(*server.Parts){r.on(t, redisURL)}, edits...)...), r
}

func (r *recorder) ended(t testing.TB) []sdk.ReadOnlySpan {
	t.Helper()
	assert.NoError(t, r.traces.Close(context.Background()))
	return r.spans
}

func root(t testing.TB, spans []sdk.ReadOnlySpan, requestID string) sdk.ReadOnlySpan {
	t.Helper()
	i := slices.IndexFunc(spans, func(s sdk.ReadOnlySpan) bool { return attributes(s)["commerce.request_id"] == requestID })
	assert.Require(t, i >= 0, "no span of request %s", requestID)
	return spans[i]
}

func below(spans []sdk.ReadOnlySpan, parent sdk.ReadOnlySpan) (children []sdk.ReadOnlySpan) {
	for _, s := range spans {
		if s.Parent().SpanID() == parent.SpanContext().SpanID() {
			children = append(children, s)
		}
	}
	return children
}

func named(spans []sdk.ReadOnlySpan, name string) sdk.ReadOnlySpan {
	for _, s := range spans {
		if strings.HasPrefix(s.Name(), name) {
			return s
		}
	}
	return nil
}

func attributes(s sdk.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func took(s sdk.ReadOnlySpan) time.Duration { return s.EndTime().Sub(s.StartTime()) }

func (s *shop) line(t testing.TB, requestID string) map[string]any {
	t.Helper()
	lines := s.Log.logged(t)
	i := slices.IndexFunc(lines, func(line map[string]any) bool { return line["msg"] == "request" && line["request_id"] == requestID })
	assert.Require(t, i >= 0, "no line of request %s", requestID)
	return lines[i]
}

func TestTraces_HaveTheRequestAndItsCommands(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"single": ephemeral.Redis, "cluster": ephemeral.Cluster} {
		t.Run(name, func(t *testing.T) {
			s, r := traced(t, url(t))
			guest := s.guest(t)
			const traceID, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
			guest.add(`{"product_id":1}`, "X-Request-Id", "added", "traceparent", "00-"+traceID+"-"+parent+"-01")
			guest.send("GET", "/cart", "", "X-Request-Id", "read")
			guest.send("PATCH", "/cart/items/77", `{"quantity":1}`, "X-Request-Id", "refused")
			spans := r.ended(t)

			added := root(t, spans, "added")
			assert.That(t, added.SpanContext().TraceID().String() == traceID && added.Parent().SpanID().String() == parent, "the request is not part of the caller's trace: %v", added.SpanContext())
			for _, want := range []struct{ name, id, command, code string }{
				{"POST /cart/add", "added", "redis commit", ""},
				{"GET /cart", "read", "redis ", ""},
				{"PATCH /cart/items/:item_id", "refused", "redis ", "item_not_found"},
			} {
				request := root(t, spans, want.id)
				children := below(spans, request)
				has := attributes(request)
				assert.That(t, request.Name() == want.name && request.SpanKind() == trace.SpanKindServer && has["commerce.code"] == want.code && has["commerce.caller"] == "guest" && has["commerce.store"] == fmt.Sprint(s.ID), "%s: span %q with %v", want.id, request.Name(), has)
				assert.That(t, request.Status().Code == codes.Unset, "%s: status %v; a refusal is no error", want.id, request.Status())
				assert.That(t, named(children, want.command) != nil, "%s: no span of a Redis command among %d children", want.id, len(children))
				assert.Equal(t, s.line(t, want.id)["trace_id"], any(request.SpanContext().TraceID().String()), "%s: trace_id in the log", want.id)
			}
		})
	}
}

// Proxies decide whether a request is part of a trace that they do not record.
func TestTraces_FollowTheDecisionOfATrustedProxy(t *testing.T) {
	s, r := traced(t, ephemeral.Redis(t))
	s.guest(t).send("GET", "/cart", "", "X-Request-Id", "unsampled",
		"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
	id := s.line(t, "unsampled")["trace_id"]
	assert.That(t, id == nil, "trace_id %v of a request without a trace", id)
	spans := r.ended(t)
	assert.That(t, len(spans) == 0, "%d spans", len(spans))
}

// A trace's id decides whether it is sampled: a client could have all requests recorded, or none.
func TestTraces_IgnoreTheTraceOfAClient(t *testing.T) {
	s, r := traced(t, ephemeral.Redis(t), func(p *server.Parts) { p.TrustedProxies = nil })
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, decision := range []string{"00", "01"} {
		s.guest(t).send("GET", "/cart", "", "X-Request-Id", decision, "traceparent", "00-"+traceID+"-00f067aa0ba902b7-"+decision)
	}
	spans := r.ended(t)
	for _, decision := range []string{"00", "01"} {
		request := root(t, spans, decision)
		assert.That(t, request.SpanContext().TraceID().String() != traceID && !request.Parent().IsValid(),
			"flags %s: the request is part of its client's trace: %v", decision, request.SpanContext())
	}
}

func TestTraces_HaveAMergeAsOneSpan(t *testing.T) {
	s, r := traced(t, ephemeral.Cluster(t))
	s.guest(t).fill("1×1").logIn("1001").send("GET", "/cart", "", "X-Request-Id", "login")
	spans := r.ended(t)
	login := root(t, spans, "login")
	assert.Equal(t, attributes(login)["commerce.caller"], "customer", "caller")
	merge := named(below(spans, login), "merge")
	assert.Require(t, merge != nil, "no span of the merge")
	assert.That(t, len(below(spans, merge)) >= 5, "too few spans below the merge: reserve, claim, apply, finish, forget")
}

// Reads that share a round trip belong to no single request, so each has a span for its wait.
func TestTraces_OfConcurrentReadsAreComplete(t *testing.T) {
	s, r := traced(t, ephemeral.Redis(t))
	guest := s.guest(t).fill("1×1")
	const readers = 50
	at(readers, func(i int) { s.with(t, guest).send("GET", "/cart", "", "X-Request-Id", fmt.Sprint("read", i)) })
	spans := r.ended(t)
	for i := range readers {
		request := root(t, spans, fmt.Sprint("read", i))
		read := named(below(spans, request), "redis ")
		assert.That(t, read != nil && read.SpanKind() == trace.SpanKindClient && attributes(read)["db.system.name"] == "redis", "read %d has no span of a call of Redis", i)
	}
}

func TestTraces_HaveTheCodeOfAFailure(t *testing.T) {
	redis := ephemeral.StartRedis(t)
	s, r := traced(t, redis.URL)
	guest := s.guest(t).fill("1×1")
	redis.Stop()
	guest.send("GET", "/cart", "", "X-Request-Id", "failed")
	spans := r.ended(t)
	failed := root(t, spans, "failed")
	status := failed.Status()
	assert.That(t, status.Code == codes.Error && status.Description == "unavailable", "status %v of the request", status)
	command := named(below(spans, failed), "redis ")
	assert.That(t, command != nil && command.Status().Code == codes.Error && command.Status().Description == "connection", "the span of the command: %v", command)
}

func wantNoSecret(t *testing.T, spans []sdk.ReadOnlySpan) {
	t.Helper()
	for _, s := range spans {
		all := fmt.Sprint(s.Name(), s.Status(), s.Events(), s.Links(), attributes(s), s.Resource().String(), s.SpanContext().TraceState())
		assert.That(t, !strings.Contains(strings.ToLower(all), "planted") && !strings.Contains(all, "@example.com"), "a secret in a span: %s", all)
	}
}

// A method or path that a client makes up is not a part of a name.
func TestTraces_NameOnlyStandardMethods(t *testing.T) {
	s, r := traced(t, ephemeral.Redis(t))
	exchange(t, s.guest(t).request("PLANTED", "/planted", nil))
	s.guest(t).send("GET", "/planted", "")
	spans := r.ended(t)
	assert.Require(t, len(spans) == 2 && spans[0].Name() == "HTTP" && spans[1].Name() == "GET", "spans %v", spans)
	for _, span := range spans {
		route, has := attributes(span)["http.route"]
		assert.That(t, !has, "%s has the route %q", span.Name(), route)
	}
}

func TestTraces_GoOnAtTheIssuerOfTokens(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	asked := make(chan string, 1)
	issuer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Traceparent") }))
	t.Cleanup(issuer.Close)
	keys := assert.Must(auth.NewJWKS(auth.JWKSConfig{
		URL: issuer.URL, Propagate: r.traces.Propagate, Log: slog.New(slog.DiscardHandler), Wait: ephemeral.Patience(5 * time.Second),
	}))(t)
	tokens := assert.Must(auth.NewJWT(auth.JWTConfig{JWKS: keys}))(t)
	s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.JWT, p.Traces = tokens, r.traces })
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"EdDSA","kid":"a"}`)) + "." + part([]byte(`{"sub":"1001"}`)) + "." + part(make([]byte, 64))
	s.guest(t).refused(503, "unavailable", "GET", "/cart", "", "Authorization", "Bearer "+token, "X-Request-Id", "customer")
	spans := r.ended(t)
	customer := root(t, spans, "customer")
	fetch := named(below(spans, customer), "fetch JWKS")
	assert.Require(t, fetch != nil, "no span of the fetch")
	ids := fetch.SpanContext()
	assert.Equal(t, <-asked, "00-"+ids.TraceID().String()+"-"+ids.SpanID().String()+"-01", "the traceparent that the issuer got")
}
