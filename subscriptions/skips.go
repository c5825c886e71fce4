package subscriptions

import "sync"

const (
	// deepSkip is how many rows a page may skip before it counts as deep. Skipping
	// 20,000 rows takes Postgres 1.6 ms, and 4.5 ms where updates have hidden the
	// rows from their index; 1,000,000 rows take 50 times as long.
	deepSkip = 20_000

	// maxDeepPages is how many deep pages one instance reads at the same time: one
	// for each store, and so few in all that they leave most connections to others.
	maxDeepPages = 2
)

// deepPages are the stores that read a deep page now. The zero value is ready to use.
type deepPages struct {
	mu      sync.Mutex
	reading map[int64]bool
}

// enter reports whether the store may read a deep page now. If so, the caller calls
// leave afterwards. It never waits.
func (d *deepPages) enter(store int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reading[store] || len(d.reading) == maxDeepPages {
		return false
	}
	if d.reading == nil {
		d.reading = map[int64]bool{}
	}
	d.reading[store] = true
	return true
}

func (d *deepPages) leave(store int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.reading, store)
}
