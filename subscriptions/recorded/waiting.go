package recorded

import (
	"context"
	"runtime"
	"sync"
	"time"

	"commerce/auth/limit"
	"commerce/subscriptions/subscriptionshttp"
)

const (
	maxWait = 30 // seconds of one call

	// checkPause is the shortest time between the starts of two checks.
	checkPause = 250 * time.Millisecond

	// turnsPerCPU is how many calls with news read them at the same time: half of the connections.
	// One transaction can have news for all calls.
	turnsPerCPU = 4

	// maxTurn is how long a call waits for its turn, before it reads its news anyway.
	maxTurn = 5 * time.Second
)

// Waiter lets calls wait for changes. While any call waits, it asks the source for news of all their
// stores at once. A call that waits holds no connection. Postgres must not announce changes
// itself: NOTIFY serializes commits, and forbids prepared transactions.
type Waiter struct {
	news   News
	places *limit.Slots[int64] // by store
	turns  *limit.Slots[struct{}]

	mu       sync.Mutex
	calls    waitingCalls
	checking bool // a goroutine checks

	next time.Time // when the next check may start. Only the goroutine that checks uses it
}

// News returns the latest record of each store that has one after the given record of the store. It is cheap, also
// for many stores. With an error, it returns what it knows.
type News func(ctx context.Context, after map[int64]Change) (map[int64]Change, error)

// NewWaiter returns one whose calls take one of the places that it shares with other Waiters.
func NewWaiter(news News, places *limit.Slots[int64]) *Waiter {
	return &Waiter{
		news: news, calls: waitingCalls{},
		places: places,
		turns:  limit.NewSlots[struct{}](limit.SlotsConfig{Each: turnsPerCPU * runtime.GOMAXPROCS(0), Waiting: subscriptionshttp.MaxWaiting}),
	}
}

// Wait returns true when a store has a change after the given one. It returns false when ctx ends,
// and immediately if too many calls wait.
func (w *Waiter) Wait(ctx context.Context, store int64, after Change) bool {
	leave, err := w.places.Enter(ctx, store)
	if err != nil {
		return false
	}
	defer leave()
	call := &waitingCall{after, make(chan struct{})}
	w.add(store, call)
	defer w.remove(store, call)
	select {
	case <-call.news:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeTurn waits until few calls read news. The caller must call leave.
func (w *Waiter) takeTurn(ctx context.Context) (leave func()) {
	ctx, cancel := context.WithTimeout(ctx, maxTurn)
	defer cancel()
	leave, err := w.turns.Enter(ctx, struct{}{})
	if err != nil {
		return func() {}
	}
	return leave
}

func (w *Waiter) add(store int64, call *waitingCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls.add(store, call)
	if !w.checking {
		w.checking = true
		go w.check()
	}
}

func (w *Waiter) remove(store int64, call *waitingCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls.remove(store, call)
}

// check checks again and again until no call waits. The first check after a call has begun to wait also
// finds what has changed since the call read the changes. A check that fails is repeated.
func (w *Waiter) check() {
	for {
		time.Sleep(time.Until(w.next))
		after := w.waiting()
		if after == nil {
			return
		}
		w.next = time.Now().Add(checkPause)
		latest, _ := w.news(context.Background(), after) // no call's own
		w.mu.Lock()
		w.calls.wake(latest)
		w.mu.Unlock()
	}
}

// waiting returns what the next check asks for; nil if no call waits, which ends the checks.
func (w *Waiter) waiting() map[int64]Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) == 0 {
		w.checking = false
		return nil
	}
	return w.calls.oldest()
}

// waitingCalls are calls that wait for a change, by store.
type waitingCalls map[int64]map[*waitingCall]struct{}

type waitingCall struct {
	after Change
	news  chan struct{} // closed when there is a change after it
}

func (c waitingCalls) add(store int64, call *waitingCall) {
	if c[store] == nil {
		c[store] = map[*waitingCall]struct{}{}
	}
	c[store][call] = struct{}{}
}

func (c waitingCalls) remove(store int64, call *waitingCall) {
	delete(c[store], call)
	if len(c[store]) == 0 {
		delete(c, store)
	}
}

// oldest returns the earliest change of each store after which a call waits.
func (c waitingCalls) oldest() map[int64]Change {
	oldest := make(map[int64]Change, len(c))
	for store, calls := range c {
		for call := range calls {
			if known, ok := oldest[store]; !ok || call.after.Compare(known) < 0 {
				oldest[store] = call.after
			}
		}
	}
	return oldest
}

// wake ends the wait of each call for which the latest change of its store is news.
func (c waitingCalls) wake(latest map[int64]Change) {
	for store, change := range latest {
		for call := range c[store] {
			if change.Compare(call.after) > 0 {
				close(call.news)
				c.remove(store, call)
			}
		}
	}
}
