package otlp

import (
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// These types are OTLP's messages. In JSON, enums are numbers, 64-bit integers are strings and
// IDs are hexadecimal, as the SDK's types for IDs already encode themselves.
type (
	message struct {
		ResourceSpans []*resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource      `json:"resource"`
		ScopeSpans []*scopeSpans `json:"scopeSpans"`
		SchemaURL  string        `json:"schemaUrl,omitempty"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Scope     scope  `json:"scope"`
		Spans     []span `json:"spans"`
		SchemaURL string `json:"schemaUrl,omitempty"`
	}
	scope struct {
		Name       string     `json:"name,omitempty"`
		Version    string     `json:"version,omitempty"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	span struct {
		linked
		ParentSpanID  trace.SpanID `json:"parentSpanId,omitzero"`
		Name          string       `json:"name"`
		Kind          int          `json:"kind"`
		Start         uint64       `json:"startTimeUnixNano,string"`
		End           uint64       `json:"endTimeUnixNano,string"`
		Events        []event      `json:"events,omitempty"`
		DroppedEvents int          `json:"droppedEventsCount,omitempty"`
		Links         []linked     `json:"links,omitempty"`
		DroppedLinks  int          `json:"droppedLinksCount,omitempty"`
		Status        status       `json:"status"`
	}
	// linked is a link to a span, and what a span has in common with it.
	linked struct {
		TraceID    trace.TraceID `json:"traceId"`
		SpanID     trace.SpanID  `json:"spanId"`
		TraceState string        `json:"traceState,omitempty"`
		Flags      uint32        `json:"flags"`
		attributes
	}
	event struct {
		Time uint64 `json:"timeUnixNano,string"`
		Name string `json:"name"`
		attributes
	}
	attributes struct {
		Attributes []keyValue `json:"attributes,omitempty"`
		Dropped    int        `json:"droppedAttributesCount,omitempty"`
	}
	status struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	// value has at most one field.
	value struct {
		String any             `json:"stringValue,omitempty"`
		Bool   any             `json:"boolValue,omitempty"`
		Int    any             `json:"intValue,omitempty"`
		Double any             `json:"doubleValue,omitempty"`
		Bytes  any             `json:"bytesValue,omitempty"`
		Array  *list[value]    `json:"arrayValue,omitempty"`
		Map    *list[keyValue] `json:"kvlistValue,omitempty"`
	}
	list[T any] struct {
		Values []T `json:"values"`
	}
)

// group returns the message with all spans, in their order, by resource and scope.
func group(spans []sdk.ReadOnlySpan) message {
	type resourceKey struct {
		attributes attribute.Distinct
		schema     string
	}
	type scopeKey struct {
		of    *resourceSpans
		scope instrumentation.Scope
	}
	var m message
	resources, scopes := map[resourceKey]*resourceSpans{}, map[scopeKey]*scopeSpans{}
	for _, s := range spans {
		res := s.Resource()
		inResource := resourceKey{res.Equivalent(), res.SchemaURL()}
		r, known := resources[inResource]
		if !known {
			r = &resourceSpans{Resource: resource{keyValues(res.Attributes())}, SchemaURL: res.SchemaURL()}
			resources[inResource] = r
			m.ResourceSpans = append(m.ResourceSpans, r)
		}
		inScope := scopeKey{r, s.InstrumentationScope()}
		group, known := scopes[inScope]
		if !known {
			group = newScope(inScope.scope)
			scopes[inScope] = group
			r.ScopeSpans = append(r.ScopeSpans, group)
		}
		group.Spans = append(group.Spans, newSpan(s))
	}
	return m
}

func newScope(s instrumentation.Scope) *scopeSpans {
	return &scopeSpans{Scope: scope{s.Name, s.Version, keyValues(s.Attributes.ToSlice())}, SchemaURL: s.SchemaURL}
}

func newSpan(s sdk.ReadOnlySpan) span {
	converted := span{
		linked:        newLinked(s.SpanContext(), s.Parent().IsRemote(), attributes{keyValues(s.Attributes()), s.DroppedAttributes()}),
		ParentSpanID:  s.Parent().SpanID(),
		Name:          s.Name(),
		Kind:          int(s.SpanKind()), // OpenTelemetry's API has the same numbers
		Start:         nanos(s.StartTime()),
		End:           nanos(s.EndTime()),
		DroppedEvents: s.DroppedEvents(),
		DroppedLinks:  s.DroppedLinks(),
		Status:        status{statusCodes[s.Status().Code], s.Status().Description},
	}
	for _, e := range s.Events() {
		had := attributes{keyValues(e.Attributes), e.DroppedAttributeCount}
		converted.Events = append(converted.Events, event{nanos(e.Time), e.Name, had})
	}
	for _, l := range s.Links() {
		had := attributes{keyValues(l.Attributes), l.DroppedAttributeCount}
		converted.Links = append(converted.Links, newLinked(l.SpanContext, l.SpanContext.IsRemote(), had))
	}
	return converted
}

func nanos(t time.Time) uint64 { return uint64(t.UnixNano()) }

// OTLP's flags above those of W3C's trace context: whether it is known that the parent, or the
// linked span, is of another process, and whether it is.
const (
	remoteKnown = 1 << 8
	remote      = 1 << 9
)

func newLinked(c trace.SpanContext, isRemote bool, a attributes) linked {
	flags := uint32(c.TraceFlags()) | remoteKnown
	if isRemote {
		flags |= remote
	}
	return linked{c.TraceID(), c.SpanID(), c.TraceState().String(), flags, a}
}

// statusCodes are OTLP's numbers, which are not those of OpenTelemetry's API.
var statusCodes = map[codes.Code]int{codes.Unset: 0, codes.Ok: 1, codes.Error: 2}

func keyValues(all []attribute.KeyValue) []keyValue {
	converted := make([]keyValue, len(all))
	for i, a := range all {
		converted[i] = keyValue{string(a.Key), newValue(a.Value)}
	}
	return converted
}

func newValue(v attribute.Value) value {
	switch v.Type() {
	case attribute.BOOL:
		return value{Bool: v.AsBool()}
	case attribute.INT64:
		return value{Int: strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return value{Double: double(v.AsFloat64())}
	case attribute.STRING:
		return value{String: v.AsString()}
	case attribute.BYTESLICE:
		return value{Bytes: v.AsByteSlice()}
	case attribute.BOOLSLICE:
		return array(attribute.BoolValue, v.AsBoolSlice())
	case attribute.INT64SLICE:
		return array(attribute.Int64Value, v.AsInt64Slice())
	case attribute.FLOAT64SLICE:
		return array(attribute.Float64Value, v.AsFloat64Slice())
	case attribute.STRINGSLICE:
		return array(attribute.StringValue, v.AsStringSlice())
	case attribute.SLICE:
		return array(func(v attribute.Value) attribute.Value { return v }, v.AsSlice())
	case attribute.MAP:
		return value{Map: &list[keyValue]{keyValues(v.AsMap())}}
	}
	return value{}
}

func array[T any](asValue func(T) attribute.Value, items []T) value {
	converted := make([]value, len(items))
	for i, item := range items {
		converted[i] = newValue(asValue(item))
	}
	return value{Array: &list[value]{converted}}
}

// double returns a number, or the name of one that JSON lacks.
func double(n float64) any {
	switch {
	case math.IsNaN(n):
		return "NaN"
	case math.IsInf(n, 1):
		return "Infinity"
	case math.IsInf(n, -1):
		return "-Infinity"
	}
	return n
}
