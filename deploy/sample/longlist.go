package sample

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/period"
	"commerce/subscriptions"
)

// LongListStore returns a store of the demo that only has subscriptions, those of LongList.
func LongListStore() *store.Store {
	return &store.Store{ID: 3, Name: "Long list", Currency: "SAR", Locale: locale.En, TaxRate: 150_000, PricesIncludeTax: true}
}

const (
	longListYears    = 2 // in which the subscriptions were bought
	longListFirst    = 100_001
	longListCustomer = 3001
)

// LongListCustomers returns the customers of LongList. Each has four subscriptions.
func LongListCustomers(n int) []subscriptions.Customer {
	customers := make([]subscriptions.Customer, (n+3)/4)
	for i := range customers {
		customers[i] = subscriptions.Customer{
			StoreID: LongListStore().ID, ID: longListCustomer + int64(i), Email: fmt.Sprintf("customer%d@example.com", i+1),
			Phone: strconv.Itoa(560_000_001 + i), CallingCode: callingCodeOf(i),
		}
	}
	return customers
}

// LongList yields n subscriptions of the LongListStore, so that a list has many pages. Their
// dates are relative to now.
func LongList(n int, now time.Time) iter.Seq[subscriptions.Subscription] {
	now = now.UTC().Truncate(time.Second)
	offers := longListOffers()
	begin := now.AddDate(-longListYears, 0, 0)
	apart := now.Sub(begin) / time.Duration(n)
	customers := (n + 3) / 4
	return func(yield func(subscriptions.Subscription) bool) {
		for i := range n {
			start := begin.Add(apart * time.Duration(i)).Truncate(time.Second)
			customer := longListCustomer + int64(i%customers)
			if !yield(offers[i%len(offers)].aged(longListFirst+int64(i), customer, start, now)) {
				return
			}
		}
	}
}

// longListOffers returns the plans that the subscriptions are for.
func longListOffers() []offer {
	of := LongListStore()
	product := subscriptions.Product{ID: 31, Name: named("Cloud storage", "تخزين سحابي"), Slug: "cloud-storage", Type: "subscription"}
	return []offer{
		{of.ID, of.Currency, product, subscriptions.Variant{ID: 311, Duration: period.Monthly, Price: 1900}},
		{of.ID, of.Currency, product, subscriptions.Variant{ID: 312, Duration: period.Quarterly, Price: 4900}},
		{of.ID, of.Currency, product, subscriptions.Variant{ID: 313, Duration: period.Annually, Price: 19000}},
	}
}

// aged returns a subscription as it may be now if it was bought at start: half of them are
// active. Only a recent one is on trial, and only one that is older than its first period
// has expired.
func (o offer) aged(id, customer int64, start, now time.Time) subscriptions.Subscription {
	age := now.Sub(start)
	const day = 24 * time.Hour
	switch roll := id % 20; {
	case roll < 10 && age < 13*day:
		return o.trialing(id, customer, start)
	case roll == 10:
		return o.pastDue(id, customer, start, now, int(id%4))
	case roll == 11 && age > 5*day:
		return o.paused(id, customer, start, now)
	case roll > 11 && roll < 15:
		return o.canceled(id, customer, start, now.Add(-age/3))
	case roll > 15 && start.AddDate(0, o.variant.Duration.Months(), 0).Before(now):
		return o.expired(id, customer, start)
	}
	return o.active(id, customer, start, now)
}
