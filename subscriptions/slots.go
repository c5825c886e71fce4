package subscriptions

import "sync"

const (
	// manySkips is the number of skipped rows from which the reads of a page are
	// limited. Skipping 20,000 rows takes Postgres 1.1 ms, or 8 ms if updates have hidden
	// the rows from their index; 1,000,000 rows take 50 times as long.
	manySkips = 20_000

	// maxSkippers is how many such pages one instance reads at the same time. They are few,
	// so that most connections remain for other requests.
	maxSkippers, maxSkippersOfStore = 2, 1

	// maxStreams is how many streams of changes one instance sends at the same time. They
	// share the connections with other requests. Each holds two pages of 1,000 changes, which
	// is 2 MB, or 34 MB if all subscriptions have the largest metadata.
	maxStreams, maxStreamsOfStore = 8, 2
)

// slots limit how many operations run at the same time, in total and for each store.
type slots struct {
	all, ofStore int

	mu      sync.Mutex
	taken   int
	byStore map[int64]int // of stores with a slot
}

func newSlots(all, ofStore int) *slots {
	return &slots{all: all, ofStore: ofStore, byStore: map[int64]int{}}
}

// enter takes a slot and reports whether one was free. If so, the caller must call leave
// afterwards. enter never waits.
func (s *slots) enter(store int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == s.all || s.byStore[store] == s.ofStore {
		return false
	}
	s.taken++
	s.byStore[store]++
	return true
}

func (s *slots) leave(store int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.byStore[store]--; s.byStore[store] == 0 {
		delete(s.byStore, store)
	}
}
