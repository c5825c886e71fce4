package subscriptions

import (
	"cmp"
	"context"
	"crypto/rand"
	"math/big"
	"slices"

	"commerce/auth/locale"
	"commerce/cart/period"
)

// Memory is a source of subscriptions that never change.
type Memory struct {
	byStore   map[int64][]Subscription // newest first
	customers map[customerKey]*Customer
	keys      [][]byte
	history   history // for the changes: all rows have the same transaction
}

type customerKey struct{ store, id int64 }

var _ Source = (*Memory)(nil)

// NewMemory returns a source of the given subscriptions. Filters match the given customers.
// It signs page links with a random key, so they become invalid when the process ends.
func NewMemory(customers []Customer, all []Subscription) *Memory {
	m := &Memory{
		byStore:   map[int64][]Subscription{},
		customers: make(map[customerKey]*Customer, len(customers)),
		keys:      [][]byte{[]byte(rand.Text() + rand.Text())},
		history:   newMemoryHistory(),
	}
	for _, c := range customers {
		m.customers[customerKey{c.StoreID, c.ID}] = &c
	}
	for _, s := range all {
		m.byStore[s.StoreID] = append(m.byStore[s.StoreID], s)
	}
	for _, rows := range m.byStore {
		slices.SortFunc(rows, newerFirst)
	}
	return m
}

// LinkKeys implements Source.
func (m *Memory) LinkKeys(context.Context, bool) ([][]byte, error) { return m.keys, nil }

// Get implements Source.
func (m *Memory) Get(_ context.Context, store, id int64, _ locale.Locale) (*Subscription, error) {
	rows := m.byStore[store]
	at, found := newestFirst(rows, id)
	if !found {
		return nil, ErrNotFound
	}
	s := rows[at]
	return &s, nil
}

// List implements Source.
func (m *Memory) List(_ context.Context, store int64, q Query) ([]Subscription, error) {
	rows := m.byStore[store]
	if q.Older != 0 {
		at, found := newestFirst(rows, q.Older)
		if found {
			at++
		}
		rows = rows[at:]
	}
	if q.Newer != 0 {
		at, _ := newestFirst(rows, q.Newer)
		passing := m.passing(rows[:at], q.Filter)
		return passing[max(0, len(passing)-q.Limit):], nil
	}
	passing := m.passing(rows, q.Filter)
	passing = passing[min(q.Skip, len(passing)):]
	return passing[:min(q.Limit, len(passing))], nil
}

// Totals implements Source.
func (m *Memory) Totals(_ context.Context, store int64) ([]Total, error) {
	type group struct {
		status   Status
		currency string
		duration period.Duration
	}
	groups := map[group]*Total{}
	for i := range m.byStore[store] {
		s := &m.byStore[store][i]
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
func newestFirst(rows []Subscription, id int64) (at int, found bool) {
	return slices.BinarySearchFunc(rows, id, func(s Subscription, id int64) int { return cmp.Compare(id, s.ID) })
}

func (m *Memory) passing(rows []Subscription, f Filter) []Subscription {
	var passing []Subscription
	for i := range rows {
		if f == (Filter{}) || f.passes(&rows[i]) && f.passesCustomer(m.customers[customerKey{rows[i].StoreID, rows[i].CustomerID}]) {
			s := rows[i]
			s.Scheduled = nil
			passing = append(passing, s)
		}
	}
	return passing
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
