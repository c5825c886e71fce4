package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	described "go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	standard "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"commerce/deploy/assert"
)

var (
	traceID = trace.TraceID{0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c}
	spanID  = trace.SpanID{0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74}
	begin   = time.Unix(1544712660, 300000001)
)

func sent(t *testing.T, stubs ...tracetest.SpanStub) []byte {
	t.Helper()
	return assert.Must(json.Marshal(newMessage(snapshots(stubs...))))(t)
}

func snapshots(stubs ...tracetest.SpanStub) []sdk.ReadOnlySpan {
	return tracetest.SpanStubs(stubs).Snapshots()
}

var ids = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([^"]*)"`)

// sizes of IDs, in bytes.
var sizes = map[string]int{"traceId": 16, "spanId": 8, "parentSpanId": 8}

// decoded reads a body with OpenTelemetry's own messages, and refuses members that these lack.
// TracesData has the members of the request's message, whose package needs gRPC. JSON of Protocol
// Buffers has IDs in base64 instead.
func decoded(t *testing.T, body []byte) *spans.TracesData {
	t.Helper()
	standard := ids.ReplaceAllFunc(body, func(member []byte) []byte {
		parts := ids.FindSubmatch(member)
		id, err := hex.DecodeString(string(parts[2]))
		assert.That(t, err == nil && len(id) == sizes[string(parts[1])], "%s is not hexadecimal, or of another size", member)
		return fmt.Appendf(nil, `"%s":"%s"`, parts[1], base64.StdEncoding.EncodeToString(id))
	})
	var all spans.TracesData
	err := protojson.Unmarshal(standard, &all)
	assert.Require(t, err == nil, "%v in %s", err, body)
	return &all
}

// Messages of Protocol Buffers can be read from other JSON, too: with 64-bit numbers, enums by
// name, or members by their other name.
func TestExporter_SendsTheJSONOfOTLP(t *testing.T) {
	t.Parallel()
	got := string(sent(t, tracetest.SpanStub{
		Name:        "GET /cart",
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled}),
		SpanKind:    trace.SpanKindServer, StartTime: begin, EndTime: begin.Add(time.Millisecond),
		Attributes:           []attribute.KeyValue{attribute.Int64("store", math.MaxInt64)},
		Status:               sdk.Status{Code: codes.Error, Description: "timeout"},
		Resource:             described.NewSchemaless(attribute.String("service.name", "commerce")),
		InstrumentationScope: instrumentation.Scope{Name: "commerce"},
	}))
	const want = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"commerce"}}]},` +
		`"schemaUrl":"","scopeSpans":[{"scope":{"name":"commerce"},"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",` +
		`"flags":257,"name":"GET /cart","kind":2,"startTimeUnixNano":"1544712660300000001","endTimeUnixNano":"1544712660301000001",` +
		`"attributes":[{"key":"store","value":{"intValue":"9223372036854775807"}}],"status":{"code":2,"message":"timeout"}}]}]}]}`
	if got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestExporter_SendsAllThatSpansHave(t *testing.T) {
	t.Parallel()
	other := trace.SpanID{1, 2, 3, 4, 5, 6, 7, 8}
	process := described.NewWithAttributes("https://schema/1", attribute.String("service.name", "shop"))
	got := decoded(t, sent(t, tracetest.SpanStub{
		Name:        "merge",
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled}),
		Parent:      trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: other, Remote: true}),
		SpanKind:    trace.SpanKindClient, StartTime: begin, EndTime: begin.Add(time.Second),
		Attributes: []attribute.KeyValue{
			attribute.Int("int", math.MinInt64), attribute.Int("zero", 0), attribute.String("text", "\"<سلة>\"\n"), attribute.String("empty", ""),
			attribute.String("cut", "cut\xe2\x82"), attribute.Bool("other", true), attribute.StringSlice("list", []string{"a"}),
		},
		Resource: process, InstrumentationScope: instrumentation.Scope{Name: "commerce"},
	}, tracetest.SpanStub{
		Name:        "wait",
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: other}),
		StartTime:   begin, EndTime: begin,
		Resource: process, InstrumentationScope: instrumentation.Scope{Name: "commerce"},
	}))
	local := uint32(spans.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	want := &spans.TracesData{ResourceSpans: []*spans.ResourceSpans{{
		Resource:  &standard.Resource{Attributes: []*common.KeyValue{text("service.name", "shop")}},
		SchemaUrl: "https://schema/1",
		ScopeSpans: []*spans.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "commerce"}, Spans: []*spans.Span{{
			TraceId: traceID[:], SpanId: spanID[:], ParentSpanId: other[:], Name: "merge",
			Flags: 1 | local | uint32(spans.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK),
			Kind:  spans.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: 1544712660300000001, EndTimeUnixNano: 1544712661300000001,
			Attributes: []*common.KeyValue{
				number("int", math.MinInt64), number("zero", 0), text("text", "\"<سلة>\"\n"), text("empty", ""),
				text("cut", "cut\ufffd\ufffd"), text("other", "true"), text("list", `["a"]`),
			},
			Status: &spans.Status{},
		}, {
			TraceId: traceID[:], SpanId: other[:], Name: "wait", Flags: local,
			StartTimeUnixNano: 1544712660300000001, EndTimeUnixNano: 1544712660300000001, Status: &spans.Status{},
		}}}},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func text(key, s string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}}
}

func number(key string, n int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}}
}

func TestExporter_SendsTheNumbersOfOTLPForKindsAndStatuses(t *testing.T) {
	t.Parallel()
	only := func(stub tracetest.SpanStub) *spans.Span {
		return decoded(t, sent(t, stub)).ResourceSpans[0].ScopeSpans[0].Spans[0]
	}
	for kind, want := range map[trace.SpanKind]spans.Span_SpanKind{
		trace.SpanKindUnspecified: spans.Span_SPAN_KIND_UNSPECIFIED,
		trace.SpanKindInternal:    spans.Span_SPAN_KIND_INTERNAL,
		trace.SpanKindServer:      spans.Span_SPAN_KIND_SERVER,
		trace.SpanKindClient:      spans.Span_SPAN_KIND_CLIENT,
		trace.SpanKindProducer:    spans.Span_SPAN_KIND_PRODUCER,
		trace.SpanKindConsumer:    spans.Span_SPAN_KIND_CONSUMER,
	} {
		assert.Equal(t, only(tracetest.SpanStub{SpanKind: kind}).Kind, want, "%v", kind)
	}
	for code, want := range map[codes.Code]spans.Status_StatusCode{
		codes.Unset: spans.Status_STATUS_CODE_UNSET, codes.Ok: spans.Status_STATUS_CODE_OK, codes.Error: spans.Status_STATUS_CODE_ERROR,
	} {
		assert.Equal(t, only(tracetest.SpanStub{Status: sdk.Status{Code: code}}).Status.GetCode(), want, "%v", code)
	}
}
