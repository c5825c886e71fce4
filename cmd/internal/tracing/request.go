package tracing

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"commerce/auth/timing"
	"commerce/cart/wire"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request is the span of one request. A nil *Request records nothing.
type Request struct{ span trace.Span }

// Unmatched is the Route of a request that matches no route.
const Unmatched = "unmatched"

// Response is what a request's span has about its end.
type Response struct {
	Method    string // as the client sent it
	Route     string // the pattern, such as "/cart/items/:item_id"; not the path; Unmatched for none
	Status    int
	Code      string // of the error; "": no error
	Store     int64  // 0: not known
	Caller    string // kind of the caller; "": not known
	RequestID string
}

// Begin begins the span of a request. If the request comes from a trusted proxy and has a traceparent
// header, the span continues that trace. The header of a client would decide what is sampled. Begin
// drops tracestate, which can contain any text. It returns a nil *Request if the request is not sampled.
func (t *Traces) Begin(r *http.Request, trusted bool) (context.Context, *Request) {
	ctx := r.Context()
	if t == nil {
		return ctx, nil
	}
	parent := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header)))
	inner := ctx
	if trusted && parent.IsValid() { // otherwise the span would say that its parent is remote
		inner = trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceState(trace.TraceState{}))
	}
	inner, span := t.tracer.Start(inner, "request", trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return ctx, nil
	}
	return inner, &Request{span}
}

// Propagate adds headers to a call, so that the called service can continue the trace of ctx.
func (t *Traces) Propagate(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// TraceID returns the ID of the trace in hexadecimal, or "" if r is nil.
func (r *Request) TraceID() string {
	if r == nil {
		return ""
	}
	return r.span.SpanContext().TraceID().String()
}

// End ends the span. Its name and attributes follow OpenTelemetry's conventions for HTTP. The
// attributes that begin with "commerce." are our own.
func (r *Request) End(a Response) {
	if r == nil {
		return
	}
	defer r.span.End()
	name, method := a.Method, a.Method
	if !wire.StandardMethod(method) {
		name, method = "HTTP", "_OTHER" // OpenTelemetry's words for a method that a client made up
	}
	about := []attribute.KeyValue{
		attribute.String("http.request.method", method),
		attribute.Int("http.response.status_code", a.Status),
		attribute.String("commerce.request_id", a.RequestID),
	}
	if a.Route != Unmatched {
		name += " " + a.Route
		about = append(about, attribute.String("http.route", a.Route))
	}
	if a.Store != 0 {
		about = append(about, attribute.Int64("commerce.store", a.Store), attribute.String("commerce.caller", a.Caller))
	}
	if a.Code != "" {
		about = append(about, attribute.String("commerce.code", a.Code))
	}
	r.span.SetName(name)
	r.span.SetAttributes(about...)
	if a.Status >= http.StatusInternalServerError {
		timing.Fail(r.span, cmp.Or(a.Code, strconv.Itoa(a.Status)))
	}
}
