package feed

import (
	"context"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"commerce/subscriptions"
	"commerce/subscriptions/recorded"
)

// Memory is a source of the changes of subscriptions in memory. Deletions are among them as long as the process
// runs. It is safe for concurrent use.
type Memory struct {
	mu      sync.RWMutex
	byStore map[int64][]memoryChange // in their order; a subscription has only its last one
	lineage recorded.Lineage
}

// memoryChange is the last change of a subscription.
type memoryChange struct {
	recorded.Change
	row     *subscriptions.Subscription // nil: it was deleted
	deleted time.Time
}

// firstTransaction stands for the transaction that wrote the first rows. Each change has a later one of its own.
const firstTransaction = 1

// NewMemory returns the changes of subscriptions in memory: those that it has now, and what changes later. Cursors
// become invalid when the process ends.
func NewMemory(of *subscriptions.Memory) *Memory {
	m := &Memory{
		byStore: map[int64][]memoryChange{},
		lineage: recorded.Lineage{Database: recorded.Database{System: mathrand.Int64()}, Ended: firstTransaction + 1},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range of.Watch(m.record) {
		m.byStore[s.StoreID] = append(m.byStore[s.StoreID], memoryChange{Change: recorded.Change{Transaction: firstTransaction, ID: s.ID}, row: s})
	}
	return m
}

// record makes a change the last one of a store.
func (m *Memory) record(w subscriptions.Written) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := memoryChange{Change: recorded.Change{Transaction: m.lineage.Ended, ID: w.ID}, row: w.Row}
	if w.Row == nil {
		c.deleted = w.At
	}
	m.lineage.Ended++
	others := slices.DeleteFunc(m.byStore[w.StoreID], func(before memoryChange) bool { return before.ID == c.ID })
	m.byStore[w.StoreID] = append(others, c)
}

func (m *Memory) Changes(_ context.Context, store int64, q Query) (Changes, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := m.byStore[store]
	at, found := slices.BinarySearchFunc(all, q.After.Change, func(c memoryChange, after recorded.Change) int { return c.Compare(after) })
	if found {
		at++
	}
	page := all[at:min(at+min(q.Limit, len(all)), len(all))]
	c := Changes{More: at+len(page) < len(all)}
	var last recorded.Change
	for _, change := range page {
		if change.row != nil {
			c.Changed = append(c.Changed, *change.row)
		} else {
			c.Deleted = append(c.Deleted, Deletion{change.ID, change.deleted})
		}
		last = change.Change
	}
	var err error
	c.Next, err = m.lineage.Next(q.After, last)
	return c, err
}

func (m *Memory) News(_ context.Context, after map[int64]recorded.Change) (map[int64]recorded.Change, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	news := map[int64]recorded.Change{}
	for store, known := range after {
		all := m.byStore[store]
		if n := len(all); n > 0 && all[n-1].Compare(known) > 0 {
			news[store] = all[n-1].Change
		}
	}
	return news, nil
}
