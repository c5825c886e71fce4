package timing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"commerce/auth/timing"
	"commerce/deploy/assert"
)

type key struct{}

func TestTimes_SumByPlace(t *testing.T) {
	t.Parallel()
	ctx := &timing.Times{Context: context.WithValue(t.Context(), key{}, "value")}
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
		assert.Equal(t, ctx.Spent(at), want, "place %d", at)
	}
	assert.That(t, inner.Value(key{}) == "value" && timing.Of(inner) == ctx, "a value of the context is lost")
}

func TestTimes_OfUnmeasuredWorkAreNil(t *testing.T) {
	t.Parallel()
	timing.Add(t.Context(), timing.Redis, time.Second)
	times := timing.Of(t.Context())
	assert.That(t, times == nil && times.Spent(timing.Redis) == 0, "a context without Times is measured")
}

// Work that several requests share must not count for the request that began it.
func TestDetach_KeepsValuesAndMeasuresNothing(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	ctx := &timing.Times{Context: parent}
	detached := timing.Detach(ctx)
	cancel()
	timing.Add(detached, timing.Postgres, time.Second)
	assert.That(t, ctx.Spent(timing.Postgres) == 0 && detached.Err() == nil && detached.Value(key{}) == "value",
		"spent %v, err %v, value %v", ctx.Spent(timing.Postgres), detached.Err(), detached.Value(key{}))
}

// A deadline below Times must not need a goroutine, as it would for an unknown context.
func TestTimes_EndWithTheirContext(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(t.Context())
	ctx := &timing.Times{Context: parent}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	cancel()
	if inner.Err() == nil { // set before cancel returns only if no goroutine is between
		t.Error("the end of the parent is not known at once")
	}
}

func TestStep_HasWhatFailed(t *testing.T) {
	t.Parallel()
	recorded := tracetest.NewInMemoryExporter()
	ctx, _ := sdk.NewTracerProvider(sdk.WithSyncer(recorded)).Tracer("test").Start(t.Context(), "request")
	_, end := timing.Step(ctx, "own")
	end(nil)
	_, end = timing.Call(ctx, "redis", "call")
	end(fmt.Errorf("read: %w", context.DeadlineExceeded))
	spans := recorded.GetSpans()
	own, call := spans[0], spans[1]
	assert.That(t, own.SpanKind == trace.SpanKindInternal && own.Status.Code == codes.Unset && len(own.Attributes) == 0,
		"a step that succeeds: %v %v %v", own.SpanKind, own.Status, own.Attributes)
	want := []attribute.KeyValue{attribute.String("db.system.name", "redis"), attribute.String("error.type", "timeout")}
	assert.That(t, call.SpanKind == trace.SpanKindClient && call.Status.Code == codes.Error && call.Status.Description == "timeout" && slices.Equal(call.Attributes, want),
		"a call that fails: %v %v %v", call.SpanKind, call.Status, call.Attributes)
}

// Not parallel, because testing counts the allocations of the whole process.
func TestStep_AllocatesNothingWithoutATrace(t *testing.T) {
	ctx := &timing.Times{Context: t.Context()}
	allocated := testing.AllocsPerRun(100, func() {
		inner, end := timing.Step(ctx, "step")
		timing.Add(inner, timing.Catalog, time.Second)
		end(nil)
	})
	assert.Equal(t, allocated, 0, "allocations")
}

func TestWithin_EndsAtTheEarlierDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request, limit, want time.Duration
	}{
		"its own":        {request: time.Minute, limit: time.Second, want: time.Second},
		"the request's":  {request: time.Second, limit: time.Minute, want: time.Second},
		"none is longer": {limit: time.Second, want: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			request, cancel := t.Context(), context.CancelFunc(func() {})
			if c.request > 0 {
				request, cancel = context.WithTimeout(t.Context(), c.request)
			}
			defer cancel()
			ctx, stop := timing.Within(context.WithValue(request, key{}, "value"), c.limit)
			defer stop()
			start := time.Now()
			assert.That(t, ctx.Err() == nil && ctx.Value(key{}) == "value",
				"%s: begins with %v and the value %v", name, ctx.Err(), ctx.Value(key{}))
			<-ctx.Done()
			if took := time.Since(start); took != c.want || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("%s: ended after %v with %v, want %v", name, took, ctx.Err(), c.want)
			}
		})
	}
}

func TestWithin_EndsWhenCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, waits := range []bool{true, false} {
			ctx, stop := timing.Within(t.Context(), time.Second)
			child, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if waits {
				go func() { <-ctx.Done() }()
				synctest.Wait()
			}
			stop()
			<-ctx.Done()
			<-child.Done()
			time.Sleep(2 * time.Second)
			assert.That(t, ctx.Err() == context.Canceled && child.Err() == context.Canceled,
				"the errors are %v and %v, want the first reason", ctx.Err(), child.Err())
		}
	})
}

func TestWithin_HasEndedIfItsRequestHas(t *testing.T) {
	t.Parallel()
	request, cancel := context.WithCancel(t.Context())
	running, stop := timing.Within(request, time.Minute)
	defer stop()
	cancel()
	late, stopLate := timing.Within(request, time.Minute)
	defer stopLate()
	<-late.Done()
	assert.That(t, late.Err() == context.Canceled, "a call that begins late has the error %v", late.Err())
	assert.That(t, running.Err() == nil, "a call under way ended with its request: %v", running.Err())
}
