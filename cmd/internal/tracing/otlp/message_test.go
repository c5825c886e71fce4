package otlp

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	"google.golang.org/protobuf/testing/protocmp"

	"commerce/cmd/internal/tracing/otlp/otlptest"
)

var (
	traceID = trace.TraceID{0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c}
	spanID  = trace.SpanID{0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74}
	begin   = time.Unix(1544712660, 300000001)
)

// sent returns stubs of spans as the exporter sends them.
func sent(t *testing.T, stubs ...tracetest.SpanStub) []byte {
	t.Helper()
	body, err := json.Marshal(group(snapshots(stubs...)))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func snapshots(stubs ...tracetest.SpanStub) []sdk.ReadOnlySpan {
	return tracetest.SpanStubs(stubs).Snapshots()
}

func decoded(t *testing.T, body []byte) *spans.TracesData {
	t.Helper()
	all, err := otlptest.Decode(body)
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return all
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
		Events:               []sdk.Event{{Name: "retry", Time: begin}},
		Status:               sdk.Status{Code: codes.Error, Description: "timeout"},
		Resource:             described.NewSchemaless(attribute.String("service.name", "commerce")),
		InstrumentationScope: instrumentation.Scope{Name: "commerce"},
	}))
	const want = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"commerce"}}]},` +
		`"scopeSpans":[{"scope":{"name":"commerce"},"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",` +
		`"flags":257,"attributes":[{"key":"store","value":{"intValue":"9223372036854775807"}}],"name":"GET /cart","kind":2,` +
		`"startTimeUnixNano":"1544712660300000001","endTimeUnixNano":"1544712660301000001",` +
		`"events":[{"timeUnixNano":"1544712660300000001","name":"retry"}],"status":{"code":2,"message":"timeout"}}]}]}]}`
	if got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestExporter_SendsAllThatASpanHas(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	other := trace.SpanID{1, 2, 3, 4, 5, 6, 7, 8}
	got := decoded(t, sent(t, tracetest.SpanStub{
		Name:        "merge",
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, TraceState: state}),
		Parent:      trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: other, Remote: true}),
		SpanKind:    trace.SpanKindClient, StartTime: begin, EndTime: begin.Add(time.Second),
		Attributes: []attribute.KeyValue{attribute.Bool("a", false)}, DroppedAttributes: 1,
		Events:        []sdk.Event{{Name: "retry", Time: begin, Attributes: []attribute.KeyValue{attribute.String("b", "")}, DroppedAttributeCount: 2}},
		DroppedEvents: 3,
		Links: []sdk.Link{{
			SpanContext:           trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: other, TraceState: state}),
			Attributes:            []attribute.KeyValue{attribute.Int("c", 0)},
			DroppedAttributeCount: 4,
		}},
		DroppedLinks: 5,
		Status:       sdk.Status{Code: codes.Ok},
	})).ResourceSpans[0].ScopeSpans[0].Spans[0]
	want := &spans.Span{
		TraceId: traceID[:], SpanId: spanID[:], ParentSpanId: other[:], TraceState: "vendor=1", Name: "merge",
		Flags: 1 | uint32(spans.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK|spans.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK),
		Kind:  spans.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: 1544712660300000001, EndTimeUnixNano: 1544712661300000001,
		Attributes:             []*common.KeyValue{pair("a", &common.AnyValue{Value: &common.AnyValue_BoolValue{}})},
		DroppedAttributesCount: 1,
		Events: []*spans.Span_Event{{
			Name: "retry", TimeUnixNano: 1544712660300000001,
			Attributes: []*common.KeyValue{pair("b", text(""))}, DroppedAttributesCount: 2,
		}},
		DroppedEventsCount: 3,
		Links: []*spans.Span_Link{{
			TraceId: traceID[:], SpanId: other[:], TraceState: "vendor=1", Flags: uint32(spans.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK),
			Attributes: []*common.KeyValue{pair("c", number(0))}, DroppedAttributesCount: 4,
		}},
		DroppedLinksCount: 5,
		Status:            &spans.Status{Code: spans.Status_STATUS_CODE_OK},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func pair(key string, v *common.AnyValue) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: v}
}

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

func number(n int64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
}

func double64(n float64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: n}}
}

func boolean(b bool) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: b}}
}

func binary(b string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: []byte(b)}}
}

func listOf(all ...*common.AnyValue) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: all}}}
}

func TestExporter_SendsAttributesOfEveryType(t *testing.T) {
	t.Parallel()
	tested := map[attribute.Type]bool{}
	for _, c := range []struct {
		value attribute.Value
		want  *common.AnyValue
	}{
		{attribute.Value{}, &common.AnyValue{}},
		{attribute.BoolValue(true), boolean(true)},
		{attribute.Int64Value(math.MinInt64), number(math.MinInt64)},
		{attribute.Float64Value(0), double64(0)},
		{attribute.Float64Value(1.5e300), double64(1.5e300)},
		{attribute.Float64Value(math.NaN()), double64(math.NaN())},
		{attribute.Float64Value(math.Inf(1)), double64(math.Inf(1))},
		{attribute.Float64Value(math.Inf(-1)), double64(math.Inf(-1))},
		{attribute.StringValue("\"<سلة>\"\n"), text("\"<سلة>\"\n")},
		{attribute.StringValue("cut\xe2\x82"), text("cut\ufffd\ufffd")},
		{attribute.BoolSliceValue([]bool{true, false}), listOf(boolean(true), boolean(false))},
		{attribute.Int64SliceValue([]int64{1, -1}), listOf(number(1), number(-1))},
		{attribute.Float64SliceValue([]float64{0.5, math.Inf(1)}), listOf(double64(0.5), double64(math.Inf(1)))},
		{attribute.StringSliceValue([]string{"a", ""}), listOf(text("a"), text(""))},
		{attribute.StringSliceValue(nil), listOf()},
		{attribute.ByteSliceValue([]byte("\x00\xff?")), binary("\x00\xff?")},
		{attribute.ByteSliceValue(nil), binary("")},
		{attribute.SliceValue(attribute.IntValue(1), attribute.StringValue("a")), listOf(number(1), text("a"))},
		{attribute.MapValue(attribute.Int("a", 1)), &common.AnyValue{
			Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: []*common.KeyValue{pair("a", number(1))}}},
		}},
	} {
		tested[c.value.Type()] = true
		has := []attribute.KeyValue{{Key: "key", Value: c.value}}
		span := decoded(t, sent(t, tracetest.SpanStub{Attributes: has})).ResourceSpans[0].ScopeSpans[0].Spans[0]
		if diff := cmp.Diff([]*common.KeyValue{pair("key", c.want)}, span.Attributes, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%v: %s", c.value, diff)
		}
	}
	for kind := attribute.EMPTY; !strings.HasPrefix(kind.String(), "Type("); kind++ { // until the first that has no name
		if !tested[kind] {
			t.Errorf("no test of %v", kind)
		}
	}
}

func TestExporter_SendsTheNumbersOfOTLPForKindsAndStatuses(t *testing.T) {
	t.Parallel()
	for kind, want := range map[trace.SpanKind]spans.Span_SpanKind{
		trace.SpanKindUnspecified: spans.Span_SPAN_KIND_UNSPECIFIED,
		trace.SpanKindInternal:    spans.Span_SPAN_KIND_INTERNAL,
		trace.SpanKindServer:      spans.Span_SPAN_KIND_SERVER,
		trace.SpanKindClient:      spans.Span_SPAN_KIND_CLIENT,
		trace.SpanKindProducer:    spans.Span_SPAN_KIND_PRODUCER,
		trace.SpanKindConsumer:    spans.Span_SPAN_KIND_CONSUMER,
	} {
		if got := decoded(t, sent(t, tracetest.SpanStub{SpanKind: kind})).ResourceSpans[0].ScopeSpans[0].Spans[0].Kind; got != want {
			t.Errorf("%v: %v, want %v", kind, got, want)
		}
	}
	for code, want := range map[codes.Code]spans.Status_StatusCode{
		codes.Unset: spans.Status_STATUS_CODE_UNSET,
		codes.Ok:    spans.Status_STATUS_CODE_OK,
		codes.Error: spans.Status_STATUS_CODE_ERROR,
	} {
		if got := decoded(t, sent(t, tracetest.SpanStub{Status: sdk.Status{Code: code}})).ResourceSpans[0].ScopeSpans[0].Spans[0].Status.GetCode(); got != want {
			t.Errorf("%v: %v, want %v", code, got, want)
		}
	}
}

func TestExporter_GroupsSpansByResourceAndScope(t *testing.T) {
	t.Parallel()
	shop := attribute.String("service.name", "shop")
	plain, versioned := described.NewSchemaless(shop), described.NewWithAttributes("https://schema/1", shop)
	one := instrumentation.Scope{Name: "one"}
	two := instrumentation.Scope{Name: "one", Version: "2", SchemaURL: "https://schema/2", Attributes: attribute.NewSet(attribute.Int("n", 1))}
	stub := func(name string, r *described.Resource, s instrumentation.Scope) tracetest.SpanStub {
		return tracetest.SpanStub{Name: name, Resource: r, InstrumentationScope: s}
	}
	got := decoded(t, sent(t, stub("a", plain, one), stub("b", versioned, one), stub("c", plain, two), stub("d", plain, one), stub("e", versioned, one)))
	for _, r := range got.ResourceSpans {
		for _, s := range r.ScopeSpans {
			for i, span := range s.Spans {
				s.Spans[i] = &spans.Span{Name: span.Name}
			}
		}
	}
	resource := &standard.Resource{Attributes: []*common.KeyValue{pair("service.name", text("shop"))}}
	named := func(names ...string) (all []*spans.Span) {
		for _, name := range names {
			all = append(all, &spans.Span{Name: name})
		}
		return all
	}
	want := &spans.TracesData{ResourceSpans: []*spans.ResourceSpans{
		{Resource: resource, ScopeSpans: []*spans.ScopeSpans{
			{Scope: &common.InstrumentationScope{Name: "one"}, Spans: named("a", "d")},
			{
				Scope: &common.InstrumentationScope{Name: "one", Version: "2", Attributes: []*common.KeyValue{pair("n", number(1))}},
				Spans: named("c"), SchemaUrl: "https://schema/2",
			},
		}},
		{Resource: resource, SchemaUrl: "https://schema/1", ScopeSpans: []*spans.ScopeSpans{
			{Scope: &common.InstrumentationScope{Name: "one"}, Spans: named("b", "e")},
		}},
	}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
