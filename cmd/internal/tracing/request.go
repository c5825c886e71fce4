package tracing

import (
	"context"
	"net/http"
	"strconv"

	"commerce/cart/wire"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request is the span of one request. A nil *Request records nothing.
type Request struct{ span trace.Span }

// Response describes the end of a request for its span.
type Response struct {
	Method    string // as the client sent it
	Route     string // the pattern, such as "/cart/items/:item_id"; not the path
	Status    int
	Code      string // of the error; "": no error
	Store     int64  // 0: not known
	Caller    string // kind of the caller; "": not known
	RequestID string
}

// Begin begins the span of a request. If the request has a traceparent header, the span
// continues that trace. Begin drops tracestate, which can contain any text. It returns a nil
// *Request if the request is not sampled.
func (t *Traces) Begin(r *http.Request) (context.Context, *Request) {
	ctx := r.Context()
	if t == nil {
		return ctx, nil
	}
	parent := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header)))
	inner := trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceState(trace.TraceState{}))
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
	method := a.Method
	if !wire.StandardMethod(method) {
		method = "_OTHER" // OpenTelemetry's value for nonstandard methods
	}
	r.span.SetName(method + " " + a.Route)
	r.span.SetAttributes(
		attribute.String("http.request.method", method),
		attribute.String("http.route", a.Route),
		attribute.Int("http.response.status_code", a.Status),
		attribute.String("commerce.request_id", a.RequestID),
	)
	if a.Store != 0 {
		r.span.SetAttributes(attribute.Int64("commerce.store", a.Store), attribute.String("commerce.caller", a.Caller))
	}
	if a.Code != "" {
		r.span.SetAttributes(attribute.String("commerce.code", a.Code))
	}
	if a.Status >= http.StatusInternalServerError {
		if a.Code == "" {
			a.Code = strconv.Itoa(a.Status)
		}
		r.span.SetAttributes(attribute.String("error.type", a.Code))
		r.span.SetStatus(codes.Error, a.Code)
	}
}
