package limit_test

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// taken returns how many uses a window gives a client, and the refusal.
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
	late := func() {} // gives back a use of the period before, which changes nothing
	for range 2 {
		giveBack, _ := w.Take(t.Context(), "a", refusal)
		giveBack()
		kept, refused := w.Take(t.Context(), "a", refusal)
		assert.Require(t, refused == nil, "%v", refused)
		late()
		late = kept
		at.forward(time.Minute)
		n, refused := taken(t, w, "a")
		assert.That(t, n == 2 && refused.RetryAfter == 9*time.Minute && refused.Budget == (problem.Budget{Name: "it", Uses: 3}),
			"%d more uses, then %v and %+v", n, refused.RetryAfter, refused.Budget)
		n, _ = taken(t, w, "b")
		assert.That(t, n == 3, "another client has %d uses", n)
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
			assert.Equal(t, got.Load(), 40, "uses at two instances")
			_, refused := limit.NewWindow(c).Take(t.Context(), "a", refusal)
			assert.That(t, refused != nil && refused.RetryAfter >= 8*time.Minute && refused.RetryAfter <= 10*time.Minute,
				"an instance that starts later: %v", refused)
		})
	}
}

func TestWindow_EndsInRedis(t *testing.T) {
	t.Parallel()
	c, _ := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 3, Per: 2 * time.Second})
	w := limit.NewWindow(c)
	late, _ := w.Take(t.Context(), "192.0.2.1", refusal)
	_, refused := taken(t, w, "192.0.2.1")
	time.Sleep(refused.RetryAfter + 2*time.Millisecond) // a key with a PTTL of 0 still exists
	left := keys(t, c)
	assert.That(t, len(left) == 0, "keys %q", left)
	n, _ := taken(t, w, "192.0.2.1")
	assert.That(t, n == 3, "%d uses in the next period, want 3", n)
	late()
	n, _ = taken(t, w, "192.0.2.1")
	assert.That(t, n == 0, "%d more uses, because one of the period before was given back", n)
}

func TestWindow_CountsAloneWithoutRedis(t *testing.T) {
	t.Parallel()
	down := ephemeral.StartRedis(t)
	client := dial(t, down.URL)
	down.Kill()
	w := limit.NewWindow(limit.Config{Redis: client, Log: slog.New(slog.DiscardHandler), Rates: threeInTenMinutes})
	giveBack, _ := w.Take(t.Context(), "a", refusal)
	giveBack()
	n, _ := taken(t, w, "a")
	assert.That(t, n == 3, "%d uses, want 3", n)
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
