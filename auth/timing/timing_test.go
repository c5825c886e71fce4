package timing_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/timing"
)

type key struct{}

func TestTimes_SumByPlace(t *testing.T) {
	t.Parallel()
	ctx, times := timing.With(context.WithValue(t.Context(), key{}, "value"))
	inner, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			timing.Add(inner, timing.Redis, time.Millisecond)
			timing.Add(inner, timing.Catalog, time.Microsecond)
		})
	}
	all.Wait()
	for at, want := range map[timing.Place]time.Duration{
		timing.Redis: 100 * time.Millisecond, timing.Catalog: 100 * time.Microsecond, timing.Postgres: 0, timing.Waiting: 0,
	} {
		if got := times.Spent(at); got != want {
			t.Errorf("place %d: %v, want %v", at, got, want)
		}
	}
	if inner.Value(key{}) != "value" || timing.Of(inner) != times {
		t.Error("a value of the context is lost")
	}
}

func TestTimes_OfUnmeasuredWorkAreNil(t *testing.T) {
	t.Parallel()
	timing.Add(t.Context(), timing.Redis, time.Second)
	if times := timing.Of(t.Context()); times != nil || times.Spent(timing.Redis) != 0 {
		t.Error("a context without With is measured")
	}
}

// Work that several requests share must not count for the request that began it.
func TestDetach_KeepsValuesAndMeasuresNothing(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	ctx, times := timing.With(parent)
	detached := timing.Detach(ctx)
	cancel()
	timing.Add(detached, timing.Postgres, time.Second)
	if times.Spent(timing.Postgres) != 0 || detached.Err() != nil || detached.Value(key{}) != "value" {
		t.Errorf("spent %v, err %v, value %v", times.Spent(timing.Postgres), detached.Err(), detached.Value(key{}))
	}
}

// A deadline below Times must not need a goroutine, as it would for an unknown context.
func TestTimes_EndWithTheirContext(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(t.Context())
	ctx, _ := timing.With(parent)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	cancel()
	if inner.Err() == nil { // set before cancel returns only if no goroutine is between
		t.Error("the end of the parent is not known at once")
	}
}

func BenchmarkWith(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ctx, _ := timing.With(b.Context())
		timing.Add(ctx, timing.Redis, time.Millisecond)
	}
}

func TestStep_HasWhatFailed(t *testing.T) {
	t.Parallel()
	recorded := tracetest.NewInMemoryExporter()
	ctx, _ := sdk.NewTracerProvider(sdk.WithSyncer(recorded)).Tracer("test").Start(t.Context(), "request")
	_, end := timing.Step(ctx, "own")
	end(nil)
	_, end = timing.RedisStep(ctx, "call")
	end(fmt.Errorf("read: %w", context.DeadlineExceeded))
	spans := recorded.GetSpans()
	own, call := spans[0], spans[1]
	if own.SpanKind != trace.SpanKindInternal || own.Status.Code != codes.Unset || len(own.Attributes) > 0 {
		t.Errorf("a step that succeeds: %v %v %v", own.SpanKind, own.Status, own.Attributes)
	}
	want := []attribute.KeyValue{attribute.String("db.system.name", "redis"), attribute.String("error.type", "timeout")}
	if call.SpanKind != trace.SpanKindClient || call.Status.Code != codes.Error || call.Status.Description != "timeout" || !slices.Equal(call.Attributes, want) {
		t.Errorf("a call that fails: %v %v %v", call.SpanKind, call.Status, call.Attributes)
	}
}

// Not parallel, because testing counts the allocations of the whole process.
func TestStep_AllocatesNothingWithoutATrace(t *testing.T) {
	ctx, _ := timing.With(t.Context())
	allocated := testing.AllocsPerRun(100, func() {
		inner, end := timing.Step(ctx, "step")
		timing.Add(inner, timing.Catalog, time.Second)
		end(nil)
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}
