package recorded

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"commerce/deploy/assert"
	"commerce/subscriptions/subscriptionshttp"
)

// news is a source whose stores have a latest change.
type news struct {
	latest sync.Map // of Change by store
	fails  atomic.Bool
	checks atomic.Int64
}

func (s *news) News(_ context.Context, after map[int64]Change) (map[int64]Change, error) {
	s.checks.Add(1)
	found := map[int64]Change{}
	for store, known := range after {
		if latest, ok := s.latest.Load(store); ok && latest.(Change).Compare(known) > 0 {
			found[store] = latest.(Change)
		}
	}
	if s.fails.Load() {
		return nil, errors.New("the check failed")
	}
	return found, nil
}

func at(transaction uint64, id int64) Change {
	return Change{Transaction: transaction, ID: id}
}

// waits is how long a call waits with a limit of 10 s, and what it returns.
func waits(t *testing.T, w *Waiter, store int64, after Change) (time.Duration, bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	found := w.Wait(ctx, store, after)
	return time.Since(began), found
}

func TestWaiter_EndsWithNewsOrAtItsLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after, latest Change
		store         int64         // that changes
		comes         time.Duration // when latest does
		fails         time.Duration // until when checks fail
		want          time.Duration // how long it takes
	}{
		"nothing":                          {at(5, 5), at(5, 5), 1, 0, 0, 10 * time.Second},
		"it came before the call waited":   {at(5, 5), at(6, 1), 1, 0, 0, 0},
		"of the same transaction":          {at(5, 5), at(5, 6), 1, 0, 0, 0},
		"it comes later":                   {at(5, 5), at(6, 1), 1, 5100 * time.Millisecond, 0, 5250 * time.Millisecond},
		"of another store":                 {at(5, 5), at(6, 1), 2, time.Second, 0, 10 * time.Second},
		"a replica is behind":              {at(5, 5), at(4, 9), 1, 0, 0, 10 * time.Second},
		"checks fail for a while":          {at(5, 5), at(6, 1), 1, time.Second, 3 * time.Second, 3 * time.Second},
		"checks fail":                      {at(5, 5), at(6, 1), 1, time.Second, time.Minute, 10 * time.Second},
		"the first change of an empty one": {at(0, 0), at(6, 1), 1, time.Second, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &news{}
				s.fails.Store(tc.fails > 0)
				time.AfterFunc(tc.fails-time.Nanosecond, func() { s.fails.Store(false) })
				time.AfterFunc(tc.comes-time.Nanosecond, func() { s.latest.Store(tc.store, tc.latest) })
				synctest.Wait()
				took, found := waits(t, NewWaiter(s.News, subscriptionshttp.NewPlaces()), 1, tc.after)
				assert.That(t, took == tc.want && found == (tc.want < 10*time.Second), "news %v after %v, want after %v", found, took, tc.want)
				time.Sleep(time.Minute)
			})
		})
	}
}

// Each of two calls of a store waits for its own news.
func TestWaiter_ComparesEachCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &news{}
		w := NewWaiter(s.News, subscriptionshttp.NewPlaces())
		s.latest.Store(int64(1), at(6, 1))
		go func() {
			took, found := waits(t, w, 1, at(7, 1)) // it has read another server
			assert.That(t, took == 10*time.Second && !found, "the later one: %v after %v", found, took)
		}()
		synctest.Wait()
		took, found := waits(t, w, 1, at(5, 1))
		assert.That(t, took == checkPause && found, "the earlier one: %v after %v", found, took)
		time.Sleep(time.Minute)
	})
}

func TestWaiter_ChecksFourTimesASecondWhileCallsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &news{}
		w := NewWaiter(s.News, subscriptionshttp.NewPlaces())
		for range 490 { // one after another
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Millisecond)
			w.Wait(ctx, 1, at(5, 5))
			cancel()
		}
		assert.Equal(t, s.checks.Load(), 14, "checks in 3.43 s")
		var all sync.WaitGroup
		for i := range subscriptionshttp.MaxWaiting {
			all.Go(func() { waits(t, w, int64(i), at(5, 5)) })
		}
		all.Wait()
		assert.Equal(t, s.checks.Load(), 14+40, "checks after another 10 s")
		time.Sleep(time.Minute)
		assert.Equal(t, s.checks.Load(), 14+40, "checks while no call waits")
	})
}

func TestWaiter_LimitsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewWaiter((&news{}).News, subscriptionshttp.NewPlaces())
		ctx, leave := context.WithCancel(t.Context())
		full := func(store int64) bool {
			took, _ := waits(t, w, store, at(5, 5))
			return took == 0
		}
		for i := range int64(subscriptionshttp.MaxWaiting) {
			go w.Wait(ctx, i/subscriptionshttp.MaxWaitingOfStore, at(5, 5))
			synctest.Wait()
			if i == subscriptionshttp.MaxWaitingOfStore-1 {
				assert.That(t, full(0) && !full(1), "a store with %d calls", subscriptionshttp.MaxWaitingOfStore)
			}
		}
		assert.That(t, full(subscriptionshttp.MaxWaiting), "a store without calls, of a full instance")
		leave() // as clients that disconnect
		synctest.Wait()
		assert.That(t, !full(0) && len(w.calls) == 0, "places remain taken")
		time.Sleep(time.Minute)
	})
}
