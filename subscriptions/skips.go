package subscriptions

import "sync"

const (
	// manySkips is the number of skipped rows from which the reads of a page are
	// limited. Skipping 20,000 rows takes Postgres 1.6 ms, or 4.5 ms if updates have
	// hidden the rows from their index; 1,000,000 rows take 50 times as long.
	manySkips = 20_000

	// maxSkippers is how many such pages one instance reads at the same time: one for
	// each store, and so few in total that most connections remain for other requests.
	maxSkippers = 2
)

// skippers are the stores for which a page that skips many rows is being read. The zero
// value is ready to use.
type skippers struct {
	mu      sync.Mutex
	reading map[int64]bool
}

// enter reports whether such a page may be read for a store now. If so, the caller must
// call leave afterwards. enter never waits.
func (s *skippers) enter(store int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading[store] || len(s.reading) == maxSkippers {
		return false
	}
	if s.reading == nil {
		s.reading = map[int64]bool{}
	}
	s.reading[store] = true
	return true
}

func (s *skippers) leave(store int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reading, store)
}
