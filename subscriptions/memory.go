package subscriptions

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"slices"
	"sync"
	"time"

	"commerce/auth/locale"
)

// Memory is a source of subscriptions in memory, for the demo and for tests. It is safe for
// concurrent use.
type Memory struct {
	// Now is the clock of Put. Set it before other goroutines use the Memory. Default: time.Now.
	Now func() time.Time

	customers map[customerKey]*Customer
	keys      [][]byte

	mu       sync.RWMutex
	byStore  map[int64][]*Subscription // newest first; they are replaced, never modified
	watchers []func(Written)
}

// Written is a subscription of a Memory that was put or deleted.
type Written struct {
	StoreID, ID int64
	Row         *Subscription // nil: it was deleted. The receiver must not modify it
	At          time.Time
}

type customerKey struct{ store, id int64 }

// NewMemory returns a source of the given subscriptions, which the caller must not modify afterwards.
// Filters match the given customers. Page links become invalid when the process ends.
func NewMemory(customers []Customer, all []Subscription) *Memory {
	m := &Memory{
		Now:       time.Now,
		byStore:   map[int64][]*Subscription{},
		customers: make(map[customerKey]*Customer, len(customers)),
		keys:      [][]byte{[]byte(rand.Text() + rand.Text())},
	}
	for _, c := range customers {
		m.customers[customerKey{c.StoreID, c.ID}] = &c
	}
	for i := range all {
		m.byStore[all[i].StoreID] = append(m.byStore[all[i].StoreID], &all[i])
	}
	for _, rows := range m.byStore {
		slices.SortFunc(rows, func(a, b *Subscription) int { return cmp.Compare(b.ID, a.ID) })
	}
	return m
}

// Watch calls written for each subscription that is put or deleted from now on, one at a time. It must not
// call the Memory. Watch returns all subscriptions as they are now, the lowest ID of a store first.
func (m *Memory) Watch(written func(Written)) (rows []*Subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers = append(m.watchers, written)
	for _, all := range m.byStore {
		for _, s := range slices.Backward(all) {
			rows = append(rows, s)
		}
	}
	return rows
}

// Rows returns a store's subscriptions, the newest first. The caller must not modify them.
func (m *Memory) Rows(store int64) []*Subscription {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Clone(m.byStore[store])
}

// Put adds a subscription, or replaces the store's one with the same ID.
func (m *Memory) Put(s Subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := m.byStore[s.StoreID]
	if at, found := newestFirst(rows, s.ID); found {
		rows[at] = &s
	} else {
		m.byStore[s.StoreID] = slices.Insert(rows, at, &s)
	}
	m.tell(Written{s.StoreID, s.ID, &s, m.Now()})
}

// Delete removes a subscription, if the store has it.
func (m *Memory) Delete(store, id int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := m.byStore[store]
	if at, found := newestFirst(rows, id); found {
		m.byStore[store] = slices.Delete(rows, at, at+1)
		m.tell(Written{store, id, nil, now})
	}
}

// tell calls the watchers. The caller holds the lock.
func (m *Memory) tell(w Written) {
	for _, watcher := range m.watchers {
		watcher(w)
	}
}

// newestFirst returns the position of id, or where it would be inserted, in rows of descending IDs.
func newestFirst(rows []*Subscription, id int64) (at int, found bool) {
	return slices.BinarySearchFunc(rows, id, func(s *Subscription, id int64) int { return cmp.Compare(id, s.ID) })
}

func (m *Memory) LinkKeys(context.Context, bool) ([][]byte, error) { return m.keys, nil }

func (m *Memory) Get(_ context.Context, store, id int64, _ locale.Locale) (*Subscription, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	rows := m.byStore[store]
	at, found := newestFirst(rows, id)
	if !found {
		return nil, ErrNotFound
	}
	return new(*rows[at]), nil
}

func (m *Memory) List(_ context.Context, store int64, q Query) ([]Subscription, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	rows := m.byStore[store]
	if q.ByPeriodEnd {
		rows = slices.SortedFunc(slices.Values(rows), q.Compare)
	}
	find := func(p Position) (at int, found bool) {
		return slices.BinarySearchFunc(rows, p, func(s *Subscription, p Position) int { return q.compare(Position{s.PeriodEnd, s.ID}, p) })
	}
	if q.Before != (Position{}) {
		at, _ := find(q.Before)
		nearest := m.page(slices.Backward(rows[:at]), q)
		slices.Reverse(nearest)
		return nearest, nil
	}
	if q.After != (Position{}) {
		at, found := find(q.After)
		if found {
			at++
		}
		rows = rows[at:]
	}
	return m.page(slices.All(rows), q), nil
}

// page returns the first rows that pass the filter, after those to skip.
func (m *Memory) page(rows iter.Seq2[int, *Subscription], q Query) []Subscription {
	var page []Subscription
	skip, given := q.Skip, q.Filter.Given()
	for _, s := range rows {
		switch {
		case len(page) == q.Limit:
			return page
		case !q.Filter.passes(given, s, m.customers[customerKey{s.StoreID, s.CustomerID}]):
		case skip > 0:
			skip--
		default:
			shown := *s
			shown.Scheduled, shown.CancellationReason = nil, ""
			page = append(page, shown)
		}
	}
	return page
}
