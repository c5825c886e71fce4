package lastknown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"commerce/deploy/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a source of texts that can be slow, frozen or down.
type source struct {
	mu     sync.Mutex
	rows   map[string]string
	asked  [][]string // the keys of each query
	takes  time.Duration
	broken error
	most   int // maximum of concurrent queries
	now    int
}

func (s *source) set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[key] = value
}

func (s *source) remove(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, key)
}

func (s *source) behave(takes time.Duration, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.broken = takes, broken
}

// queries returns the keys of the queries since it was last called.
func (s *source) queries() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// load returns the rows as they were when it was called.
func (s *source) load(ctx context.Context, keys []string) (map[string]string, error) {
	s.mu.Lock()
	s.asked = append(s.asked, keys)
	s.now++
	s.most = max(s.most, s.now)
	rows, takes, broken := maps.Clone(s.rows), s.takes, s.broken
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	found := map[string]string{}
	for _, key := range keys {
		if value, ok := rows[key]; ok {
			found[key] = value
		}
	}
	return found, broken
}

func inBubble(t *testing.T, test func(t *testing.T, s *source, c *Cache[string, string])) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{rows: map[string]string{"a": "1", "b": "1", "c": "1"}}
		test(t, s, newCache(s))
		synctest.Wait()
		time.Sleep(2 * time.Second) // let pending loads end
	})
}

func newCache(s *source) *Cache[string, string] {
	return New(Config[string, string]{
		Name: "texts", Source: s.load, MaxWeight: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Weigh: func(key, value string) uint32 { return uint32(len(key) + len(value)) },
	})
}

type cached interface {
	Get(context.Context, []string, func(string, string)) error
}

// want checks the values of keys, and that Get takes no longer than within.
func want(t *testing.T, c cached, within time.Duration, wanted map[string]string, keys ...string) {
	t.Helper()
	got, err := get(t, c, within, keys...)
	diff := cmp.Diff(wanted, got)
	assert.That(t, err == nil && diff == "", "Get(%v): error %v, values (-want +got):\n%s", keys, err, diff)
}

func wantUnknown(t *testing.T, c cached, within time.Duration, keys ...string) {
	t.Helper()
	got, err := get(t, c, within, keys...)
	assert.That(t, errors.Is(err, ErrUnknown), "Get(%v): %v, error %v, want ErrUnknown", keys, got, err)
}

func get(t *testing.T, c cached, within time.Duration, keys ...string) (map[string]string, error) {
	t.Helper()
	got := map[string]string{}
	began := time.Now()
	err := c.Get(t.Context(), keys, func(key, value string) { got[key] = value })
	took := time.Since(began)
	assert.That(t, took <= within, "Get(%v) took %v, want at most %v", keys, took, within)
	return got, err
}

func wantQueries(t *testing.T, s *source, wanted ...[]string) {
	t.Helper()
	synctest.Wait()
	assert.Equal(t, s.queries(), wanted, "queries")
}

var errGone = errors.New("connection refused")

type texts = map[string]string

func TestGet_LoadsAllMissesWithOneQueryAndNothingTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a")
		wantQueries(t, s, []string{"a"})
		want(t, c, 0, texts{"a": "1", "b": "1", "c": "1"}, "a", "b", "c", "none")
		wantQueries(t, s, []string{"b", "c", "none"})
		want(t, c, 0, texts{"a": "1", "b": "1"}, "a", "b", "none")
		wantQueries(t, s)
	})
}

func TestGet_SharesAPendingLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(20*time.Millisecond, nil)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { want(t, c, 20*time.Millisecond, texts{"a": "1", "b": "1"}, "a", "b") })
		}
		all.Wait()
		wantQueries(t, s, []string{"a", "b"})
	})
}

func TestGet_ShowsAChangeWithinMaxAgeWithoutExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a", "none")
		s.set("a", "2")
		s.set("none", "2")
		time.Sleep(c.c.MaxAge)
		want(t, c, 0, texts{"a": "2", "none": "2"}, "a", "none")
	})
}

func TestGet_RefreshesInTheBackground(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1", "b": "1"}, "a", "b")
		s.behave(20*time.Millisecond, nil)
		s.set("a", "2")
		time.Sleep(c.c.RefreshAfter)
		s.queries()
		want(t, c, 0, texts{"a": "1"}, "a")
		wantQueries(t, s, []string{"a"}) // b is not read
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		want(t, c, 0, texts{"a": "2"}, "a")
	})
}

// Other caches have the address of a value in their keys.
func TestGet_KeepsTheAddressOfAnUnchangedValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{rows: texts{"a": "1"}}
		load := func(ctx context.Context, key string) (*string, bool, error) {
			rows, err := s.load(ctx, []string{key})
			return new(rows[key]), true, err
		}
		c := New(Config[string, *string]{Source: Each(load), MaxWeight: 1 << 20, Weigh: func(string, *string) uint32 { return 1 }})
		read := func() (value *string) {
			time.Sleep(c.c.MaxAge)
			assert.NoError(t, c.Get(t.Context(), []string{"a"}, func(_ string, v *string) { value = v }))
			return value
		}
		first, second := read(), read()
		s.set("a", "2")
		third := read()
		assert.That(t, first == second && *first == "1" && *third == "2" && len(s.queries()) == 3, "%p %p %p", first, second, third)
	})
}

func TestExpire_ReloadsTheKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1", "b": "1"}, "a", "b")
		s.set("a", "2")
		time.Sleep(time.Millisecond)
		c.Expire("a")
		c.Expire("never held")
		s.queries()
		time.Sleep(time.Millisecond)
		want(t, c, 0, texts{"a": "2", "b": "1"}, "a", "b")
		wantQueries(t, s, []string{"a"})
	})
}

func TestExpire_InvalidatesAPendingLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a")
		time.Sleep(c.c.RefreshAfter)
		s.behave(20*time.Millisecond, nil)
		want(t, c, 0, texts{"a": "1"}, "a") // begins a load, which reads the old row
		time.Sleep(10 * time.Millisecond)
		s.set("a", "2")
		c.Expire("a")
		time.Sleep(20 * time.Millisecond)
		want(t, c, 20*time.Millisecond, texts{"a": "2"}, "a")
	})
}

func TestExpire_InvalidatesAPendingFirstLoad(t *testing.T) {
	t.Parallel()
	for name, expire := range map[string]func(*Cache[string, string]){
		"key": func(c *Cache[string, string]) { c.Expire("a") },
		"all": (*Cache[string, string]).ExpireAll,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
				s.behave(20*time.Millisecond, nil)
				var before sync.WaitGroup
				before.Go(func() { want(t, c, 20*time.Millisecond, texts{"a": "1"}, "a") })
				time.Sleep(10 * time.Millisecond)
				s.set("a", "2")
				expire(c)
				time.Sleep(time.Millisecond)
				var since sync.WaitGroup
				since.Go(func() { want(t, c, 20*time.Millisecond, texts{"a": "2"}, "a") }) // does not join the first
				before.Wait()
				want(t, c, 20*time.Millisecond, texts{"a": "2"}, "a") // nor uses what the first stored
				since.Wait()
				s.queries()
				want(t, c, 0, texts{"a": "2"}, "a")
				wantQueries(t, s)
			})
		})
	}
}

func TestExpire_KeepsThePendingLoadsResultAsLastKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(20*time.Millisecond, nil)
		var first sync.WaitGroup
		first.Go(func() { want(t, c, 20*time.Millisecond, texts{"a": "1"}, "a") })
		time.Sleep(10 * time.Millisecond)
		c.Expire("a")
		first.Wait()
		s.behave(0, errGone)
		s.queries()
		want(t, c, 0, texts{"a": "1"}, "a")
		wantQueries(t, s, []string{"a"})
	})
}

func TestExpire_AnOlderResultNeverReplacesANewerOne(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(40*time.Millisecond, nil)
		var older sync.WaitGroup
		older.Go(func() { want(t, c, 40*time.Millisecond, texts{"a": "1"}, "a") })
		time.Sleep(10 * time.Millisecond)
		s.set("a", "2")
		s.behave(0, nil)
		c.Expire("a")
		time.Sleep(time.Millisecond)
		want(t, c, 0, texts{"a": "2"}, "a")
		older.Wait()
		s.behave(0, errGone)
		want(t, c, 0, texts{"a": "2"}, "a")
	})
}

func TestExpireAll_ReloadsEverythingAndKeepsTheLastKnownValues(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1", "b": "1"}, "a", "b")
		s.set("b", "2")
		time.Sleep(time.Millisecond)
		c.ExpireAll()
		time.Sleep(time.Millisecond)
		want(t, c, 0, texts{"a": "1", "b": "2"}, "a", "b")
		c.ExpireAll()
		s.behave(0, errGone)
		want(t, c, 0, texts{"a": "1", "b": "2"}, "a", "b")
	})
}

func TestGet_ServesLastKnownValuesWhileTheSourceIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a", "none")
		s.behave(0, errGone)
		time.Sleep(time.Hour)
		want(t, c, 0, texts{"a": "1"}, "a")
		wantUnknown(t, c, 0, "a", "b")
		wantUnknown(t, c, 0, "none") // it may exist by now
		assert.That(t, !c.Reachable(), "Reachable while every query fails")

		s.behave(0, nil)
		s.set("a", "2")
		time.Sleep(pause)
		want(t, c, 0, texts{"a": "1"}, "a") // finds out that the source is back
		synctest.Wait()
		want(t, c, 0, texts{"a": "2"}, "a")
		want(t, c, 0, texts{"b": "1"}, "b")
		assert.That(t, c.Reachable(), "not Reachable while every query is answered")
	})
}

func TestGet_RemembersThatAKnownKeyWasRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a")
		s.remove("a")
		time.Sleep(c.c.MaxAge)
		want(t, c, 0, texts{}, "a")
		s.behave(0, errGone)
		time.Sleep(time.Hour)
		want(t, c, 0, texts{}, "a")
	})
}

func TestGet_RetriesAFailingSourceRarely(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a")
		s.behave(0, errGone)
		time.Sleep(time.Hour)
		s.queries()
		for range 1000 { // a second of a thousand requests
			want(t, c, 0, texts{"a": "1"}, "a")
			time.Sleep(time.Millisecond)
		}
		n := len(s.queries())
		assert.That(t, n >= 5 && n <= 11, "%d queries to a failing source, want about 10", n)
	})
}

func TestGet_WaitsForAFrozenOrSlowSourceOnlyOnce(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"frozen": time.Hour, "slow": 900 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
				want(t, c, 0, texts{"a": "1"}, "a")
				s.behave(takes, nil)
				time.Sleep(time.Minute)
				want(t, c, c.c.Patience, texts{"a": "1"}, "a") // the first to notice
				for range 100 {
					want(t, c, 0, texts{"a": "1"}, "a")
					time.Sleep(time.Millisecond)
				}
				wantUnknown(t, c, c.c.MissPatience, "b", "a")
			})
		})
	}
}

func TestGet_ServesALateResultToTheNextReader(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(300*time.Millisecond, nil)
		wantUnknown(t, c, c.c.MissPatience, "a")
		time.Sleep(300 * time.Millisecond)
		want(t, c, 0, texts{"a": "1"}, "a")

		time.Sleep(time.Minute)
		s.set("a", "2")
		want(t, c, 0, texts{"a": "1"}, "a")
		time.Sleep(301 * time.Millisecond)
		want(t, c, 0, texts{"a": "2"}, "a")
	})
}

// askAll reads n keys concurrently, one Get each, and returns how many were unknown.
func askAll(t *testing.T, c cached, n int, within time.Duration) int {
	t.Helper()
	var all sync.WaitGroup
	var unknown atomic.Int64
	for i := range n {
		all.Go(func() {
			if _, err := get(t, c, within, fmt.Sprint(i)); errors.Is(err, ErrUnknown) {
				unknown.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return int(unknown.Load())
}

func TestGet_AnswersABurstOfMissesFromAFastSource(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(5*time.Millisecond, nil)
		n := askAll(t, c, 64, 40*time.Millisecond)
		assert.That(t, n == 0, "%d of 64 unknown to a source that answers in 5ms", n)
		assert.That(t, c.Reachable(), "not Reachable while every query is answered")
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Equal(t, s.most, c.c.MaxLoads, "queries at the same time")
	})
}

func TestGet_SharesAQueuedLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(20*time.Millisecond, nil)
		var busy, all sync.WaitGroup
		busy.Go(func() { askAll(t, c, c.c.MaxLoads, 20*time.Millisecond) })
		time.Sleep(10 * time.Millisecond)
		s.queries()
		for range 50 {
			all.Go(func() { want(t, c, 30*time.Millisecond, texts{"a": "1"}, "a") })
		}
		all.Wait()
		busy.Wait()
		wantQueries(t, s, []string{"a"})
	})
}

func TestGet_DoesNotQueueWhenTheSourceFails(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(20*time.Millisecond, errGone)
		assert.Equal(t, askAll(t, c, 64, 20*time.Millisecond), 64, "of 64 unknown to a source that is gone")
		n := len(s.queries())
		assert.That(t, n == c.c.MaxLoads, "%d queries, want none after the first %d failed", n, c.c.MaxLoads)
		wantUnknown(t, c, 0, "a")
	})
}

func TestGet_DoesNotQueueWhenTheSourceIsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(time.Hour, nil)
		askAll(t, c, c.c.MaxLoads, c.c.MissPatience)
		wantUnknown(t, c, 0, "a")
	})
}

func TestGet_ASourceThatAnswersInTimeIsReachable(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		want(t, c, 0, texts{"a": "1"}, "a")
		s.behave(c.c.Patience, nil) // the reader's patience ends when the result arrives
		for range 1000 {
			time.Sleep(c.c.MaxAge)
			want(t, c, c.c.Patience, texts{"a": "1"}, "a")
			synctest.Wait()
			assert.Require(t, c.Reachable(), "not Reachable after an answer in time")
		}
	})
}

func TestGet_EndsWithItsContextWhileTheLoadContinues(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, c *Cache[string, string]) {
		s.behave(20*time.Millisecond, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, c.Get(ctx, []string{"a"}, func(string, string) {}), context.DeadlineExceeded, "Get with 5ms")
		time.Sleep(20 * time.Millisecond)
		s.queries()
		want(t, c, 0, texts{"a": "1"}, "a")
		wantQueries(t, s)
	})
}

func TestCache_LimitsItsMemoryForAnyKeys(t *testing.T) {
	t.Parallel()
	const entries = 100
	for name, exists := range map[string]bool{"keys that exist": true, "keys that do not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(Config[int, string]{
				Name: "texts", MaxWeight: entries * overhead, Log: slog.New(slog.DiscardHandler),
				Weigh: func(int, string) uint32 { return 0 },
				Source: func(_ context.Context, keys []int) (map[int]string, error) {
					if !exists {
						return nil, nil
					}
					return map[int]string{keys[0]: "v"}, nil
				},
			})
			for key := range 20 * entries {
				assert.NoError(t, c.Get(t.Context(), []int{key}, func(int, string) {}))
			}
			assert.Equal(t, c.entries.Len(), entries, "entries held")
		})
	}
}

func TestCache_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var version atomic.Int64
	c := New(Config[int, int64]{
		Name: "numbers", MaxWeight: 1 << 20, Weigh: func(int, int64) uint32 { return 8 },
		RefreshAfter: time.Millisecond, MaxAge: 2 * time.Millisecond, MissPatience: time.Minute, Patience: time.Minute,
		Source: func(_ context.Context, keys []int) (map[int]int64, error) {
			found := map[int]int64{}
			for _, key := range keys {
				found[key] = version.Load()
			}
			return found, nil
		},
	})
	var all sync.WaitGroup
	for reader := range 8 {
		all.Go(func() {
			var seen [4]int64
			for range 2000 {
				if reader == 0 {
					version.Add(1)
					c.Expire(1)
				}
				err := c.Get(t.Context(), []int{0, 1, 2, 3}, func(key int, v int64) {
					assert.That(t, v >= seen[key], "key %d went back from %d to %d", key, seen[key], v)
					seen[key] = v
				})
				assert.That(t, err == nil, "%v", err)
			}
		})
	}
	all.Wait()
}
