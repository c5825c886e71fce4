package otlp

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// These types are OTLP's messages, with what the spans of this program have. In JSON, enums are
// numbers, 64-bit integers are strings and IDs are hexadecimal, as the SDK's types for IDs
// already encode themselves.
type (
	message struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl,omitempty"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name,omitempty"`
	}
	span struct {
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
	status struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	// value has one member.
	value struct {
		String any `json:"stringValue,omitempty"`
		Int    any `json:"intValue,omitempty"`
	}
)

// newMessage returns the message with spans, at least one. All are of one process and one tracer.
func newMessage(spans []sdk.ReadOnlySpan) message {
	of := spans[0].Resource()
	group := scopeSpans{Scope: scope{spans[0].InstrumentationScope().Name}, Spans: make([]span, len(spans))}
	for i, s := range spans {
		group.Spans[i] = newSpan(s)
	}
	return message{[]resourceSpans{{resource{keyValues(of.Attributes())}, []scopeSpans{group}, of.SchemaURL()}}}
}

// OTLP's flags above those of W3C's trace context: whether it is known that the parent is of
// another process, and whether it is.
const (
	remoteKnown = 1 << 8
	remote      = 1 << 9
)

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
		Start:        nanos(s.StartTime()),
		End:          nanos(s.EndTime()),
		Attributes:   keyValues(s.Attributes()),
		Status:       status{statusCodes[s.Status().Code], s.Status().Description},
	}
}

func nanos(t time.Time) uint64 { return uint64(t.UnixNano()) }

// statusCodes are OTLP's numbers, which are not those of OpenTelemetry's API.
var statusCodes = map[codes.Code]int{codes.Unset: 0, codes.Ok: 1, codes.Error: 2}

// keyValues writes integers as integers, and any other value as a string.
func keyValues(all []attribute.KeyValue) []keyValue {
	converted := make([]keyValue, len(all))
	for i, a := range all {
		converted[i].Key = string(a.Key)
		if a.Value.Type() == attribute.INT64 {
			converted[i].Value.Int = strconv.FormatInt(a.Value.AsInt64(), 10)
		} else {
			converted[i].Value.String = a.Value.String()
		}
	}
	return converted
}
