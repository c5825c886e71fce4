package torture

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// browse lets all clients make every call, in turn, until the returned function is called.
// It passes each call, its start and its reply to note.
func browse(clients []*regular, note func(shopCall, time.Time, reply)) (stop func()) {
	var stopped atomic.Bool
	var next atomic.Int64
	var all sync.WaitGroup
	calls := everyCall()
	for _, c := range clients {
		all.Go(func() {
			for !stopped.Load() {
				call, began := calls[int(next.Add(1))%len(calls)], time.Now()
				note(call, began, c.send(call))
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return sync.OnceFunc(func() { stopped.Store(true); all.Wait() })
}

// awaitEveryCall waits until each call has been served once. On a busy machine, some calls may
// fail even without a fault.
func awaitEveryCall(t testing.TB, clients []*regular) {
	t.Helper()
	var mu sync.Mutex
	failed := map[shopCall]reply{}
	for _, call := range everyCall() {
		failed[call] = reply{}
	}
	stop := browse(clients, func(call shopCall, _ time.Time, a reply) {
		mu.Lock()
		defer mu.Unlock()
		if _, yet := failed[call]; yet {
			failed[call] = a
		}
		if a.Status == http.StatusOK {
			delete(failed, call)
		}
	})
	defer stop()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		mu.Lock()
		left := len(failed)
		mu.Unlock()
		if left == 0 {
			return
		}
		if time.Since(began) > startLimit {
			stop()
			t.Fatalf("not served within %v: %v", startLimit, failed)
		}
	}
}
