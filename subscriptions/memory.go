package subscriptions

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"maps"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"commerce/auth/locale"
)

// Memory is a source of subscriptions in memory, for the demo and for tests. It is safe for
// concurrent use.
type Memory struct {
	// Now is the clock of the states that Put records. Set it before other goroutines use the
	// Memory. Default: time.Now.
	Now func() time.Time

	customers map[customerKey]*Customer
	keys      [][]byte

	mu      sync.RWMutex
	byStore map[int64]memoryStore
	history History // for the changes
}

type memoryStore struct {
	rows    []*Subscription   // newest first; they are replaced, never modified
	changes []memoryChange    // in their order; a subscription has only its last one
	states  map[int64][]State // by subscription, the oldest first
}

// memoryChange is the last change of a subscription.
type memoryChange struct {
	Change
	row     *Subscription // nil: it was deleted
	deleted time.Time
}

type customerKey struct{ store, id int64 }

// firstTransaction stands for the transaction that wrote the first rows of a Memory. Each
// change has a later one of its own.
const firstTransaction = 1

// NewMemory returns a source of the given subscriptions, which the caller must not modify afterwards.
// Filters match the given customers. Histories begin now, unless Record is called. Page links and
// cursors become invalid when the process ends.
func NewMemory(customers []Customer, all []Subscription) *Memory {
	m := &Memory{
		Now:       time.Now,
		byStore:   map[int64]memoryStore{},
		customers: make(map[customerKey]*Customer, len(customers)),
		keys:      [][]byte{[]byte(rand.Text() + rand.Text())},
		history:   History{Database: Database{System: mathrand.Int64()}, Ended: firstTransaction + 1},
	}
	for _, c := range customers {
		m.customers[customerKey{c.StoreID, c.ID}] = &c
	}
	for i := range all {
		of := m.byStore[all[i].StoreID]
		of.rows = append(of.rows, &all[i])
		m.byStore[all[i].StoreID] = of
	}
	for store, of := range m.byStore {
		slices.SortFunc(of.rows, func(a, b *Subscription) int { return cmp.Compare(b.ID, a.ID) })
		of.changes = make([]memoryChange, 0, len(of.rows))
		of.states = make(map[int64][]State, len(of.rows))
		for _, s := range slices.Backward(of.rows) {
			of.states[s.ID] = []State{baseline(s, m.Now())}
			of.changes = append(of.changes, memoryChange{Change: Change{firstTransaction, s.ID}, row: s})
		}
		m.byStore[store] = of
	}
	return m
}

// Put adds a subscription, or replaces the store's one with the same ID.
func (m *Memory) Put(s Subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.byStore[s.StoreID]
	if of.states == nil {
		of.states = map[int64][]State{}
	}
	if at, found := newestFirst(of.rows, s.ID); found {
		of.rows[at] = &s
	} else {
		of.rows = slices.Insert(of.rows, at, &s)
	}
	of.states[s.ID] = appendState(of.states[s.ID], StateOf(&s, m.Now()))
	m.record(s.StoreID, of, memoryChange{Change: Change{ID: s.ID}, row: &s})
}

// Delete removes a subscription, if the store has it. The deletion is among the changes as
// long as the process runs.
func (m *Memory) Delete(store, id int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.byStore[store]
	if at, found := newestFirst(of.rows, id); found {
		of.rows = slices.Delete(of.rows, at, at+1)
		for i := range of.states[id] {
			of.states[id][i].Card = nil
		}
		of.states[id] = appendState(of.states[id], State{At: now, Deleted: true})
		m.record(store, of, memoryChange{Change: Change{ID: id}, deleted: now})
	}
}

// Record replaces what is known about the past of subscriptions that were given to NewMemory or Put.
// The last state of each must be what it is now. Numbers are not read.
func (m *Memory) Record(all ...Past) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range all {
		states := make([]State, 0, len(p.States))
		for _, s := range p.States {
			states = appendState(states, s)
		}
		m.byStore[p.StoreID].states[p.ID] = states
	}
}

// appendState adds a state, unless nothing happened.
func appendState(states []State, s State) []State {
	if last := len(states) - 1; last >= 0 && !s.Baseline && len(Events([]State{s, states[last]}, false)) == 0 {
		return states
	}
	s.Number = int64(len(states) + 1)
	return append(states, s)
}

// record makes a change the last one of a store, whose rows have it. The caller holds the lock.
func (m *Memory) record(store int64, of memoryStore, c memoryChange) {
	c.Transaction = m.history.Ended
	m.history.Ended++
	of.changes = slices.DeleteFunc(of.changes, func(before memoryChange) bool { return before.ID == c.ID })
	of.changes = append(of.changes, c)
	m.byStore[store] = of
}

// newestFirst returns the position of id, or where it would be inserted, in rows of descending IDs.
func newestFirst(rows []*Subscription, id int64) (at int, found bool) {
	return slices.BinarySearchFunc(rows, id, func(s *Subscription, id int64) int { return cmp.Compare(id, s.ID) })
}

func (m *Memory) LinkKeys(context.Context, bool) ([][]byte, error) { return m.keys, nil }

func (m *Memory) Get(_ context.Context, store, id int64, _ locale.Locale) (*Subscription, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	rows := m.byStore[store].rows
	at, found := newestFirst(rows, id)
	if !found {
		return nil, ErrNotFound
	}
	return new(*rows[at]), nil
}

func (m *Memory) List(_ context.Context, store int64, q Query) ([]Subscription, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	rows := m.byStore[store].rows
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
			shown.Scheduled = nil
			page = append(page, shown)
		}
	}
	return page
}

func (m *Memory) History(_ context.Context, store, id int64, q HistoryQuery) (HistoryPage, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := m.byStore[store].states[id]
	if all == nil {
		return HistoryPage{}, ErrNotFound
	}
	states := slices.Clone(all[:min(q.Newest(), int64(len(all)))])
	slices.Reverse(states)
	p, _ := q.Page(states, true)
	return p, nil
}

func (m *Memory) Totals(_ context.Context, store int64) ([]Total, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	groups := map[Total]Total{} // by what all of a group have
	for _, s := range m.byStore[store].rows {
		of := Total{Status: s.Status, Currency: s.Currency, Duration: s.Duration}
		t, known := groups[of]
		if !known {
			t = of
			t.Prices = new(big.Int)
		}
		t.Count++
		if s.CancelAtPeriodEnd {
			t.Ending++
		}
		t.Prices.Add(t.Prices, big.NewInt(int64(s.Price)))
		groups[of] = t
	}
	return slices.Collect(maps.Values(groups)), nil
}

func (m *Memory) Movements(_ context.Context, store int64) (all []Movement, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, states := range m.byStore[store].states {
		some, err := Movements(states)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (m *Memory) Changes(_ context.Context, store int64, q ChangesQuery) (Changes, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := m.byStore[store].changes
	at, found := slices.BinarySearchFunc(all, q.After.Change, func(c memoryChange, after Change) int { return c.Compare(after) })
	if found {
		at++
	}
	page := all[at:min(at+min(q.Limit, len(all)), len(all))]
	c := Changes{More: at+len(page) < len(all)}
	var last Change
	for _, change := range page {
		if change.row != nil {
			c.Changed = append(c.Changed, *change.row)
		} else {
			c.Deleted = append(c.Deleted, Deletion{change.ID, change.deleted})
		}
		last = change.Change
	}
	return m.history.Result(q.After, c, last)
}

func (m *Memory) News(_ context.Context, after map[int64]Change) (map[int64]Change, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	news := map[int64]Change{}
	for store, known := range after {
		all := m.byStore[store].changes
		if n := len(all); n > 0 && all[n-1].Compare(known) > 0 {
			news[store] = all[n-1].Change
		}
	}
	return news, nil
}
