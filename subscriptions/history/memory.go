package history

import (
	"context"
	"slices"
	"sync"

	"commerce/subscriptions"
)

// Memory is a source of the histories of subscriptions in memory. It is safe for concurrent use.
type Memory struct {
	mu     sync.RWMutex
	states map[key][]State // the oldest first
}

type key struct{ store, id int64 }

// NewMemory returns the histories of subscriptions in memory. They begin now, unless Record is called.
func NewMemory(of *subscriptions.Memory) *Memory {
	m := &Memory{states: map[key][]State{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range of.Watch(m.write) {
		m.states[key{s.StoreID, s.ID}] = []State{baseline(s, of.Now())}
	}
	return m
}

// write adds what a subscription has become.
func (m *Memory) write(w subscriptions.Written) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := key{w.StoreID, w.ID}
	if w.Row != nil {
		m.states[of] = appendState(m.states[of], StateOf(w.Row, w.At))
		return
	}
	for i := range m.states[of] {
		m.states[of][i].Card = nil
	}
	m.states[of] = appendState(m.states[of], State{At: w.At, Deleted: true})
}

// Record replaces what is known about the past of subscriptions. The last state of each must be what it is now.
// Numbers are not read.
func (m *Memory) Record(all ...Past) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range all {
		states := make([]State, 0, len(p.States))
		for _, s := range p.States {
			states = appendState(states, s)
		}
		m.states[key{p.StoreID, p.ID}] = states
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
	states := slices.Clone(all[:min(q.Newest(), int64(len(all)))])
	slices.Reverse(states)
	p, _ := q.Page(states, true)
	return p, nil
}
