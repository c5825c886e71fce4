package limit_test

import (
	"fmt"
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

// taken returns how many different uses a window gives a client, and the refusal.
func taken(t *testing.T, w *limit.Window, client string) (n int, refused *problem.Error) {
	t.Helper()
	for n < 1000 {
		if refused = w.Take(t.Context(), client, newName(), refusal); refused != nil {
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
		assert.That(t, w.Take(t.Context(), "a", "", refusal) == nil, "no use is refused") // nor does it begin the period
		at.forward(time.Minute)
		for range 5 { // one name counts once
			assert.That(t, w.Take(t.Context(), "a", "x", refusal) == nil, "the first use is refused")
		}
		at.forward(time.Minute)
		n, refused := taken(t, w, "a")
		assert.That(t, n == 2 && refused.RetryAfter == 9*time.Minute && refused.Budget == (problem.Budget{Name: "it", Uses: 3}),
			"%d more uses, then %v and %+v", n, refused.RetryAfter, refused.Budget)
		for _, refused := range []*problem.Error{w.Take(t.Context(), "a", "", refusal), w.Take(t.Context(), "a", "x", refusal), w.Refuse("a", refusal)} {
			assert.That(t, refused != nil && refused.RetryAfter == 9*time.Minute, "at the limit: %v", refused)
		}
		assert.That(t, w.Refuse("b", refusal) == nil, "an unknown client is refused")
		n, _ = taken(t, w, "b")
		assert.That(t, n == 3, "another client has %d uses", n)
		at.forward(9 * time.Minute)
	}
}

func TestWindow_LimitsASiteToThreeClients(t *testing.T) {
	t.Parallel()
	w := limit.NewWindow(limit.Config{Rates: threeInTenMinutes})
	uses := 0
	for i := range 5 {
		n, _ := taken(t, w, fmt.Sprintf("2001:db8:1:%x::/64", i))
		uses += n
	}
	unused := w.Refuse("2001:db8:1:ff::/64", refusal)
	assert.That(t, uses == 9 && unused != nil && unused.Budget.Uses == 9, "%d uses of a site, and then %v", uses, unused)
	n, _ := taken(t, w, "2001:db8:2:1::/64")
	assert.Equal(t, n, 3, "uses of another site")
}

func TestWindow_IsSharedByInstances(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"single": ephemeral.Redis, "cluster": ephemeral.Cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := inRedis(t, url(t), limit.Rate{Uses: 40, Per: 10 * time.Minute})
			instances := []*limit.Window{limit.NewWindow(c), limit.NewWindow(c)}
			var got atomic.Int64
			var running sync.WaitGroup
			for i := range 100 {
				running.Go(func() {
					instances[i%2].Take(t.Context(), "a", "the same", refusal)
					if instances[i%2].Take(t.Context(), "a", newName(), refusal) == nil {
						got.Add(1)
					}
				})
			}
			running.Wait()
			assert.Equal(t, got.Load(), 39, "other uses at two instances")
			refused := limit.NewWindow(c).Take(t.Context(), "a", "", refusal)
			assert.That(t, refused != nil && refused.RetryAfter >= 8*time.Minute && refused.RetryAfter <= 10*time.Minute,
				"an instance that starts later: %v", refused)
		})
	}
}

func TestWindow_EndsInRedis(t *testing.T) {
	t.Parallel()
	c, _ := inRedis(t, ephemeral.Redis(t), limit.Rate{Uses: 3, Per: 2 * time.Second})
	w := limit.NewWindow(c)
	w.Take(t.Context(), "192.0.2.1", "first", refusal)
	_, refused := taken(t, w, "192.0.2.1")
	w.Take(t.Context(), "192.0.2.1", "first", refusal)  // does not begin a new period
	time.Sleep(refused.RetryAfter + 2*time.Millisecond) // a key with a PTTL of 0 still exists
	left := keys(t, c)
	assert.That(t, len(left) == 0, "keys %q", left)
	n, _ := taken(t, w, "192.0.2.1")
	assert.That(t, n == 3, "%d uses in the next period, want 3", n)
}

// An instance that loses Redis goes on from what it knows, and counts alone.
func TestWindow_GoesOnWithoutRedis(t *testing.T) {
	t.Parallel()
	server := ephemeral.StartRedis(t)
	var at clock
	c := limit.Config{Redis: dial(t, server.URL), Now: at.now, Log: slog.New(slog.DiscardHandler), Rates: []limit.Rate{{Uses: 10, Per: 10 * time.Minute}}}
	c.Timeout = time.Minute
	w, other := limit.NewWindow(c), limit.NewWindow(c)
	for i := range 6 {
		other.Take(t.Context(), "2001:db8:1:1::/64", fmt.Sprint(i), refusal)
	}
	w.Take(t.Context(), "2001:db8:1:1::/64", "mine", refusal)
	server.Kill()
	for range 2 {
		assert.That(t, w.Take(t.Context(), "2001:db8:1:1::/64", "mine", refusal) == nil, "a use that has counted is refused")
	}
	n, refused := taken(t, w, "2001:db8:1:1::/64")
	assert.That(t, n == 3 && refused.RetryAfter > 9*time.Minute, "after 7 of 10 uses, %d more, then a wait of %v", n, refused.RetryAfter)
	n, _ = taken(t, w, "2001:db8:1:2::/64")
	assert.That(t, n == 10, "%d uses of another client", n)
	taken(t, w, "2001:db8:1:3::/64")
	n, _ = taken(t, w, "2001:db8:1:4::/64")
	assert.That(t, n == 0, "%d uses of a fourth client, after 30 of its site", n)
	at.forward(10 * time.Minute)
	n, _ = taken(t, w, "2001:db8:1:1::/64")
	assert.That(t, n == 10, "%d uses in the next period", n)
}

func TestWindow_NoneHasNoLimit(t *testing.T) {
	t.Parallel()
	var w *limit.Window
	assert.That(t, w.Take(t.Context(), "a", "x", refusal) == nil && w.Refuse("a", refusal) == nil, "no window refuses")
}
