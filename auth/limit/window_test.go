package limit_test

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/deploy/ephemeral"
)

// taken takes uses of a window until it refuses the client. It returns how many it got, and the
// refusal.
func taken(t *testing.T, w *limit.Window, client string) (n int, refused *problem.Error) {
	t.Helper()
	for n < 1000 {
		if _, refused = w.Take(t.Context(), client, refusal); refused != nil {
			return n, refused
		}
		n++
	}
	t.Fatal("no limit")
	return 0, nil
}

var threeInTenMinutes = []limit.Rate{{Uses: 3, Per: 10 * time.Minute}}

func TestWindow_AllowsItsUsesInEachPeriod(t *testing.T) {
	t.Parallel()
	var at clock
	w := limit.NewWindow(limit.Config{Name: "it", Now: at.now, Rates: threeInTenMinutes})
	for range 2 {
		giveBack, _ := w.Take(t.Context(), "a", refusal)
		giveBack()
		if _, refused := w.Take(t.Context(), "a", refusal); refused != nil {
			t.Fatal(refused)
		}
		at.forward(time.Minute)
		n, refused := taken(t, w, "a")
		if n != 2 || refused.RetryAfter != 9*time.Minute || refused.Budget != (problem.Budget{Name: "it", Uses: 3}) {
			t.Errorf("%d more uses, then %v and %+v", n, refused.RetryAfter, refused.Budget)
		}
		if n, _ := taken(t, w, "b"); n != 3 {
			t.Errorf("another client has %d uses", n)
		}
		at.forward(9 * time.Minute)
	}
}

func TestWindow_IsSharedByInstances(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"single": ephemeral.Redis, "cluster": ephemeral.Cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := inRedis(t, url(t), limit.Rate{Uses: 40, Per: 10 * time.Minute})
			instances := []*limit.Window{limit.NewWindow(c), limit.NewWindow(c)}
			giveBack, _ := instances[0].Take(t.Context(), "a", refusal)
			giveBack()
			var got atomic.Int64
			var running sync.WaitGroup
			for i := range 100 {
				running.Go(func() {
					if _, refused := instances[i%2].Take(t.Context(), "a", refusal); refused == nil {
						got.Add(1)
					}
				})
			}
			running.Wait()
			if got.Load() != 40 {
				t.Errorf("%d uses at two instances, want 40", got.Load())
			}
			_, refused := limit.NewWindow(c).Take(t.Context(), "a", refusal)
			if refused == nil || refused.RetryAfter < 8*time.Minute || refused.RetryAfter > 10*time.Minute {
				t.Errorf("an instance that starts later: %v", refused)
			}
		})
	}
}

func TestWindow_EndsInRedis(t *testing.T) {
	t.Parallel()
	c, _ := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 3, Per: 2 * time.Second})
	w := limit.NewWindow(c)
	_, refused := taken(t, w, "192.0.2.1")
	time.Sleep(refused.RetryAfter + 2*time.Millisecond) // a key with a PTTL of 0 still exists
	if left := keys(t, c); len(left) != 0 {
		t.Errorf("keys %q", left)
	}
	if n, _ := taken(t, w, "192.0.2.1"); n != 3 {
		t.Errorf("%d uses in the next period, want 3", n)
	}
}

func TestWindow_CountsAloneWithoutRedis(t *testing.T) {
	t.Parallel()
	down := ephemeral.StartRedis(t)
	client := dial(t, down.URL)
	down.Kill()
	w := limit.NewWindow(limit.Config{Redis: client, Log: slog.New(slog.DiscardHandler), Rates: threeInTenMinutes})
	giveBack, _ := w.Take(t.Context(), "a", refusal)
	giveBack()
	if n, _ := taken(t, w, "a"); n != 3 {
		t.Errorf("%d uses, want 3", n)
	}
}

func TestWindow_NoneHasNoLimit(t *testing.T) {
	t.Parallel()
	var w *limit.Window
	if giveBack, refused := w.Take(t.Context(), "a", refusal); refused != nil {
		t.Error("no window refuses")
	} else {
		giveBack()
	}
}
