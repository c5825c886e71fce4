package timing_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"commerce/auth/timing"
)

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
			if ctx.Err() != nil || ctx.Value(key{}) != "value" {
				t.Errorf("%s: begins with %v and the value %v", name, ctx.Err(), ctx.Value(key{}))
			}
			<-ctx.Done()
			if took := time.Since(start); took != c.want || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("%s: ended after %v with %v, want %v", name, took, ctx.Err(), c.want)
			}
		})
	}
}

func TestWithin_EndsWithoutAnyoneWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := timing.Within(t.Context(), time.Second)
		defer stop()
		time.Sleep(time.Second)
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("the error is %v", ctx.Err())
		}
		<-ctx.Done()
	})
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
			if ctx.Err() != context.Canceled || child.Err() != context.Canceled {
				t.Errorf("the errors are %v and %v, want the first reason", ctx.Err(), child.Err())
			}
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
	if <-late.Done(); late.Err() != context.Canceled {
		t.Errorf("a call that begins late has the error %v", late.Err())
	}
	if running.Err() != nil {
		t.Errorf("a call under way ended with its request: %v", running.Err())
	}
}
