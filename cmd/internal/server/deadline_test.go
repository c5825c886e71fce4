package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"commerce/auth/timing"
)

func TestDeadline_EndsAtItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waited := newRequestContext(t.Context(), time.Now().Add(time.Second))
		asked := newRequestContext(t.Context(), time.Now().Add(time.Second))
		child, cancel := context.WithTimeout(asked, time.Minute)
		defer cancel()
		if waited.Err() != nil || child.Err() != nil {
			t.Errorf("begin with %v and %v", waited.Err(), child.Err())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for name, err := range map[string]error{"asked": waited.Err(), "child": child.Err()} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v after the deadline", name, err)
			}
		}
		<-waited.Done()
	})
}

func TestDeadline_EndsWithItsClient(t *testing.T) {
	t.Parallel()
	client, disconnect := context.WithCancel(t.Context())
	quiet, waiting := newRequestContext(client, time.Now().Add(time.Hour)), newRequestContext(client, time.Now().Add(time.Hour))
	ended := waiting.Done()
	disconnect()
	<-ended
	if quiet.Err() != context.Canceled || waiting.Err() != context.Canceled {
		t.Errorf("the errors are %v and %v", quiet.Err(), waiting.Err())
	}
	if timing.Of(quiet) != &quiet.Times || requestContextOf(waiting) != waiting {
		t.Error("a value is lost")
	}
}

func TestDeadline_StopsItsTimer(t *testing.T) {
	t.Parallel()
	unused, used := newRequestContext(t.Context(), time.Now().Add(time.Hour)), newRequestContext(t.Context(), time.Now().Add(time.Hour))
	ended := used.Done()
	unused.stop()
	used.stop()
	if <-ended; used.Err() != context.Canceled {
		t.Errorf("the error is %v", used.Err())
	}
}
