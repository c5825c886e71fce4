package otlp

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// span and the types below are OTLP's messages, with what the spans of this program have. In JSON,
// enums are numbers, 64-bit integers are strings and IDs are hexadecimal, as the SDK's types for IDs
// already encode themselves.
type span struct {
	TraceID      trace.TraceID `json:"traceId"`
	SpanID       trace.SpanID  `json:"spanId"`
	ParentSpanID trace.SpanID  `json:"parentSpanId,omitzero"`
	Flags        uint32        `json:"flags"`
	Name         string        `json:"name"`
	Kind         int           `json:"kind"`
	Start        uint64        `json:"startTimeUnixNano,string"`
	End          uint64        `json:"endTimeUnixNano,string"`
	Attributes   []keyValue    `json:"attributes,omitempty"`
	Status       status        `json:"status"`
}

type status struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type keyValue struct {
	Key   attribute.Key `json:"key"`
	Value struct {      // has one member
		String any `json:"stringValue,omitempty"`
		Int    any `json:"intValue,omitempty"`
	} `json:"value"`
}

// newMessage returns the message with spans, at least one. All are of one process and one tracer.
func newMessage(spans []sdk.ReadOnlySpan) any {
	encoded := make([]span, len(spans))
	for i, s := range spans {
		encoded[i] = newSpan(s)
	}
	type object map[string]any
	of := spans[0].Resource()
	return object{"resourceSpans": []object{{
		"resource":   object{"attributes": keyValues(of.Attributes())},
		"scopeSpans": []object{{"scope": object{"name": spans[0].InstrumentationScope().Name}, "spans": encoded}},
		"schemaUrl":  of.SchemaURL(),
	}}}
}

// OTLP's flags above those of W3C's trace context: whether it is known that the parent is of
// another process, and whether it is.
const (
	remoteKnown = 1 << 8
	remote      = 1 << 9
)

// statusCodes are OTLP's numbers, which are not those of OpenTelemetry's API.
var statusCodes = map[codes.Code]int{codes.Unset: 0, codes.Ok: 1, codes.Error: 2}

func newSpan(s sdk.ReadOnlySpan) span {
	flags := uint32(s.SpanContext().TraceFlags()) | remoteKnown
	if s.Parent().IsRemote() {
		flags |= remote
	}
	return span{
		TraceID:      s.SpanContext().TraceID(),
		SpanID:       s.SpanContext().SpanID(),
		ParentSpanID: s.Parent().SpanID(),
		Flags:        flags,
		Name:         s.Name(),
		Kind:         int(s.SpanKind()), // OpenTelemetry's API has the same numbers
		Start:        uint64(s.StartTime().UnixNano()),
		End:          uint64(s.EndTime().UnixNano()),
		Attributes:   keyValues(s.Attributes()),
		Status:       status{statusCodes[s.Status().Code], s.Status().Description},
	}
}

// keyValues writes integers as integers, and any other value as a string.
func keyValues(all []attribute.KeyValue) []keyValue {
	converted := make([]keyValue, len(all))
	for i, a := range all {
		converted[i].Key = a.Key
		if a.Value.Type() == attribute.INT64 {
			converted[i].Value.Int = a.Value.String()
		} else {
			converted[i].Value.String = a.Value.String()
		}
	}
	return converted
}
