package subscriptions

import (
	"slices"
	"time"

	"commerce/auth/locale"
)

// Filter limits a list to the subscriptions that match all of its members. A zero value
// matches everything. Each member has a row in Criteria.
type Filter struct {
	Email       string // in any case
	Phone       Phone
	CallingCode string // 1 to 4 ASCII digits, the first one not 0

	Statuses           StatusSet
	ExternalCustomerID string // exact
	OrderID            int64
	IDs                IDSet
	ProductID          int64
	VariantID          int64
	CancelAtPeriodEnd  Answer

	// The subscription was created in this time, the second excluded.
	CreatedFrom, CreatedBefore time.Time

	// The current period ends in this time, the second excluded. Only of a query ByPeriodEnd.
	PeriodEndFrom, PeriodEndBefore time.Time
}

// Criterion is a parameter of the list that sets a member of the Filter. Lists, their links and
// errors, SQL and Memory know members only by their criteria.
type Criterion struct {
	Name    string                             // of the parameter
	Read    func(f *Filter, value string) bool // sets the member; false for an invalid value
	Invalid locale.Sentence                    // refuses such a value

	// Text is the member in the same form for all values that match the same; "" if it matches
	// everything. Those of a range compare as its ends do.
	Text func(f *Filter) string

	Sort Sorting
	From string // the parameter that begins the range that this one ends; "" for none

	// Customer and Row are SQL: what a row of the table customers, or subscriptions, must meet. One
	// can be nil. If it is Row, a query finds the customers first.
	Customer, Row Condition
	Index         Index // finds the rows that meet Row

	// Common reports that Index does not have the rows, since most of a store meet Row; nil for never.
	Common func(f *Filter) bool

	// Matches does the same in memory. c is nil if the customer is unknown and Customer is nil.
	Matches func(f *Filter, s *Subscription, c *Customer) bool
}

// Condition returns a condition in SQL. arg adds an argument and returns its name.
type Condition func(f *Filter, arg func(any) string) string

// Index says which index finds the rows of a criterion, the better ones last.
type Index int

const (
	ByStatus Index = iota // has all rows in order, for each status
	ByDay                 // has them in order, for each DaySQL
	ByCode                // these have those that meet Row in order, for each status
	ByEnd
	ByProduct
	ByVariant
	Few // several, which have them in any order
)

// Sorting says how a criterion combines with a query ByPeriodEnd.
type Sorting int

const (
	NotSorted  Sorting = iota // no index has its rows in that order
	AlsoSorted                // with that order, and without
	OnlySorted
)

// Given returns the criteria of the filter that do not match everything.
func (f *Filter) Given() []*Criterion {
	return slices.DeleteFunc(slices.Clone(Criteria), func(c *Criterion) bool { return c.Text(f) == "" })
}

// ByCustomer reports whether a query must find customers first.
func (f *Filter) ByCustomer() bool {
	return slices.ContainsFunc(f.Given(), func(c *Criterion) bool { return c.Row == nil })
}

// By returns the indexes to read for the filter until one has found enough, the best one first. ByStatus is the plain list: before days it is
// as good, and otherwise alone.
func (f *Filter) By() (all []Index) {
	for _, c := range f.Given() {
		if by := c.Index; by != ByStatus && !(c.Common != nil && c.Common(f)) && !slices.Contains(all, by) {
			all = append(all, by)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	switch {
	case all == nil:
		return []Index{ByStatus}
	case all[0] == ByDay:
		return []Index{ByStatus, ByDay}
	case all[0] == Few:
		return all[:1]
	}
	return all
}

// passes applies criteria of the filter to a subscription. c is nil if its customer is unknown.
func (f *Filter) passes(given []*Criterion, s *Subscription, c *Customer) bool {
	return !slices.ContainsFunc(given, func(of *Criterion) bool {
		return of.Customer != nil && c == nil || !of.Matches(f, s, c)
	})
}
