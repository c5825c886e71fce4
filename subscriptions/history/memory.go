package history

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"commerce/subscriptions"
	"commerce/subscriptions/recorded"
)

// Memory is a source of the histories of subscriptions in memory. It is safe for concurrent use.
type Memory struct {
	mu       sync.RWMutex
	states   map[key][]State // the oldest first
	last     int64           // the number of the last state. Each is of a transaction of its own, with that number
	latest   map[int64]int64 // the number of the last event of each store
	database recorded.Database
}

type key struct{ store, id int64 }

// NewMemory returns the histories of subscriptions in memory. They begin now, unless Record is called.
func NewMemory(of *subscriptions.Memory) *Memory {
	m := &Memory{states: map[key][]State{}, latest: map[int64]int64{}, database: recorded.Database{System: rand.Int64()}}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range of.Watch(m.write) {
		m.append(key{s.StoreID, s.ID}, baseline(s, of.Now()))
	}
	return m
}

// write adds what a subscription has become.
func (m *Memory) write(w subscriptions.Written) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := key{w.StoreID, w.ID}
	if w.Row != nil {
		m.append(of, StateOf(w.Row, w.At))
		return
	}
	for i := range m.states[of] {
		m.states[of][i].Card = nil
	}
	m.append(of, State{At: w.At, Deleted: true})
}

// Record replaces what is known about the past of subscriptions. The last state of each must be what it is now.
// Numbers are not read. The events of a store are in the order of their times.
func (m *Memory) Record(all ...Past) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range all {
		m.states[key{p.StoreID, p.ID}] = nil
	}
	for p, s := range InOrder(all) {
		m.append(key{p.StoreID, p.ID}, *s)
	}
}

// append adds a state, unless nothing happened. The caller holds the lock.
func (m *Memory) append(of key, s State) {
	states := m.states[of]
	if last := len(states) - 1; last >= 0 && !s.Baseline && len(Events([]State{s, states[last]}, false)) == 0 {
		return
	}
	m.last++
	s.Number = m.last
	m.states[of] = append(states, s)
	if !s.Baseline {
		m.latest[of.store] = s.Number
	}
}

// States returns the states of each subscription that a store has or had, the oldest first. The caller must not
// modify them.
func (m *Memory) States(store int64) (all [][]State) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for of, states := range m.states {
		if of.store == store {
			all = append(all, slices.Clone(states))
		}
	}
	return all
}

func (m *Memory) History(_ context.Context, store, id int64, q Query) (Page, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := m.states[key{store, id}]
	if all == nil {
		return Page{}, subscriptions.ErrNotFound
	}
	states := slices.DeleteFunc(slices.Clone(all), func(s State) bool { return s.Number > q.Newest() })
	slices.Reverse(states)
	p, _ := q.Page(states, true)
	return p, nil
}

// EventNews is that of a recorded.Waiter.
func (m *Memory) EventNews(_ context.Context, after map[int64]recorded.Change) (map[int64]recorded.Change, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	news := map[int64]recorded.Change{}
	for store, known := range after {
		if last := m.latest[store]; last > int64(known.Transaction) {
			news[store] = recorded.Change{Transaction: uint64(last), ID: last<<kindBits | wholeState}
		}
	}
	return news, nil
}

// Events returns what happened in a store after a cursor, as that of Postgres does.
func (m *Memory) Events(_ context.Context, store int64, q StoreQuery) (found Feed, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var states []recordedState
	for of, all := range m.states {
		for i, s := range all {
			if of.store != store || s.Baseline || uint64(s.Number) < q.After.Transaction {
				continue
			}
			recorded := recordedState{State: s, transaction: uint64(s.Number), subscriptionID: of.id}
			if i > 0 {
				recorded.before = &all[i-1]
			}
			states = append(states, recorded)
		}
	}
	slices.SortFunc(states, func(a, b recordedState) int { return cmp.Compare(a.Number, b.Number) })
	last := found.take(q, states, false)
	known := recorded.Lineage{Database: m.database, Ended: uint64(m.last) + 1}
	found.Next, err = known.Next(q.After, last)
	return found.after(q, err)
}
