package subscriptions

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"math/big"
	"slices"
	"sync"
	"time"

	"commerce/auth/locale"
	"commerce/cart/period"
)

// Memory is a source of subscriptions in memory, for the demo and for tests. It is safe for
// concurrent use.
type Memory struct {
	customers map[customerKey]*Customer
	keys      [][]byte

	mu      sync.RWMutex
	byStore map[int64]*memoryStore
	history history // for the changes
}

// memoryStore has the subscriptions of one store.
type memoryStore struct {
	rows    []*Subscription // newest first; they are replaced, never modified
	changes []memoryChange  // in their order; a subscription has only its last one
}

type customerKey struct{ store, id int64 }

var _ Source = (*Memory)(nil)

// NewMemory returns a source of the given subscriptions. Filters match the given customers.
// It signs page links with a random key, so they become invalid when the process ends. The
// caller must not modify the given subscriptions afterwards.
func NewMemory(customers []Customer, all []Subscription) *Memory {
	m := &Memory{
		byStore:   map[int64]*memoryStore{},
		customers: make(map[customerKey]*Customer, len(customers)),
		keys:      [][]byte{[]byte(rand.Text() + rand.Text())},
		history:   newMemoryHistory(),
	}
	for _, c := range customers {
		m.customers[customerKey{c.StoreID, c.ID}] = &c
	}
	for i := range all {
		of := m.of(all[i].StoreID)
		of.rows = append(of.rows, &all[i])
	}
	for _, of := range m.byStore {
		slices.SortFunc(of.rows, func(a, b *Subscription) int { return cmp.Compare(b.ID, a.ID) })
		of.changes = make([]memoryChange, 0, len(of.rows))
		for _, s := range slices.Backward(of.rows) {
			of.changes = append(of.changes, memoryChange{change: change{firstTransaction, s.ID}})
		}
	}
	return m
}

// of returns a store, and creates it if it has no subscriptions yet.
func (m *Memory) of(store int64) *memoryStore {
	if m.byStore[store] == nil {
		m.byStore[store] = &memoryStore{}
	}
	return m.byStore[store]
}

// rows returns the subscriptions of a store, newest first. The caller holds the lock.
func (m *Memory) rows(store int64) []*Subscription {
	if of := m.byStore[store]; of != nil {
		return of.rows
	}
	return nil
}

// Put adds a subscription, or replaces the store's one with the same ID.
func (m *Memory) Put(s Subscription) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of(s.StoreID)
	if at, found := newestFirst(of.rows, s.ID); found {
		of.rows[at] = &s
	} else {
		of.rows = slices.Insert(of.rows, at, &s)
	}
	m.record(of, s.ID, time.Time{})
}

// Delete removes a subscription, if the store has it. The deletion is among the changes as
// long as the process runs.
func (m *Memory) Delete(store, id int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.of(store)
	if at, found := newestFirst(of.rows, id); found {
		of.rows = slices.Delete(of.rows, at, at+1)
		m.record(of, id, now)
	}
}

// LinkKeys implements Source.
func (m *Memory) LinkKeys(context.Context, bool) ([][]byte, error) { return m.keys, nil }

// Get implements Source.
func (m *Memory) Get(_ context.Context, store, id int64, _ locale.Locale) (*Subscription, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	rows := m.rows(store)
	at, found := newestFirst(rows, id)
	if !found {
		return nil, ErrNotFound
	}
	s := *rows[at]
	return &s, nil
}

// List implements Source.
func (m *Memory) List(_ context.Context, store int64, q Query) ([]Subscription, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	rows := m.rows(store)
	if q.Older != 0 {
		at, found := newestFirst(rows, q.Older)
		if found {
			at++
		}
		rows = rows[at:]
	}
	if q.Newer != 0 {
		at, _ := newestFirst(rows, q.Newer)
		nearest := m.page(slices.Backward(rows[:at]), q)
		slices.Reverse(nearest)
		return nearest, nil
	}
	return m.page(slices.All(rows), q), nil
}

// page returns the first rows that pass the filter, after those to skip.
func (m *Memory) page(rows iter.Seq2[int, *Subscription], q Query) []Subscription {
	var page []Subscription
	skip := q.Skip
	for _, s := range rows {
		switch {
		case len(page) == q.Limit:
			return page
		case !m.passes(s, q.Filter):
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

// Totals implements Source.
func (m *Memory) Totals(_ context.Context, store int64) ([]Total, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	type group struct {
		status   Status
		currency string
		duration period.Duration
	}
	groups := map[group]*Total{}
	for _, s := range m.rows(store) {
		of := group{s.Status, s.Currency, s.Duration}
		t := groups[of]
		if t == nil {
			t = &Total{Status: s.Status, Currency: s.Currency, Duration: s.Duration, Prices: new(big.Int)}
			groups[of] = t
		}
		t.Count++
		if s.CancelAtPeriodEnd {
			t.Ending++
		}
		t.Prices.Add(t.Prices, big.NewInt(int64(s.Price)))
	}
	totals := make([]Total, 0, len(groups))
	for _, t := range groups {
		totals = append(totals, *t)
	}
	return totals, nil
}

// newestFirst returns the position of id, or where it would be inserted, in rows of
// descending IDs.
func newestFirst(rows []*Subscription, id int64) (at int, found bool) {
	return slices.BinarySearchFunc(rows, id, func(s *Subscription, id int64) int { return cmp.Compare(id, s.ID) })
}

func (m *Memory) passes(s *Subscription, f Filter) bool {
	return f == (Filter{}) || f.passes(s) && f.passesCustomer(m.customers[customerKey{s.StoreID, s.CustomerID}])
}

func (f Filter) passes(s *Subscription) bool {
	return (f.Statuses == 0 || f.Statuses.has(s.Status)) &&
		(f.ExternalCustomerID == "" || f.ExternalCustomerID == s.ExternalCustomerID)
}

// passesCustomer applies the filters by customer. c is nil if the customer is unknown.
func (f Filter) passesCustomer(c *Customer) bool {
	if !f.byCustomer() && f.CallingCode == "" {
		return true
	}
	if c == nil {
		return false
	}
	national, uncoded := NationalPhone(c.Phone, c.CallingCode)
	return (f.Email == "" || foldEmail(f.Email) == foldEmail(c.Email)) &&
		(f.Phone == "" || f.Phone.Matches(c.CallingCode, national, uncoded)) &&
		(f.CallingCode == "" || f.CallingCode == c.CallingCode)
}
