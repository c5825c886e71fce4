package sample

import (
	"strconv"
	"time"

	"commerce/auth/store"
	"commerce/cart"
	"commerce/subscriptions"
)

func Customers() []subscriptions.Customer {
	customers := []subscriptions.Customer{
		{StoreID: 1, ID: 1001, Email: "Sara@Example.com", Phone: "501234567", CallingCode: "966"},
		{StoreID: 1, ID: 1002, Email: "omar@example.com", Phone: "509876543", CallingCode: "966"},
	}
	for i, name := range []string{"layla", "yousef", "mariam", "khalid", "noura", "tariq", "hind", "faisal"} {
		customers = append(customers, subscriptions.Customer{
			StoreID: 1, ID: int64(1003 + i), Email: name + "@example.com",
			Phone: strconv.Itoa(551_000_003 + i), CallingCode: []string{"966", "971", "965", "20"}[i%4],
		})
	}
	return append(customers,
		subscriptions.Customer{StoreID: 2, ID: 2001, Email: "grace@example.org", Phone: "2025550143", CallingCode: "1"},
		subscriptions.Customer{StoreID: 2, ID: 2002, Email: "sara@example.com", Phone: "7700900123", CallingCode: "44"},
	)
}

// Subscriptions returns the subscriptions of both stores, with dates relative to now.
// Store 1 has 48, in all six statuses; customer 1001 (Sara) has exactly three of them.
func Subscriptions(now time.Time) []subscriptions.Subscription {
	now = now.UTC().Truncate(time.Second)
	stores, products := Stores(), Products()
	first, magazine := offersOf(stores[0], products[1]), offersOf(stores[1], products[2])[0]
	monthly, yearly := first[0], first[1] // of the Pro membership
	daysAgo := func(n int) time.Time { return now.AddDate(0, 0, -n) }

	all := []subscriptions.Subscription{
		monthly.sold(5001, 1001, daysAgo(100), now),
		yearly.trialing(5002, 1001, daysAgo(5)),
		monthly.then(cancel, 5003, 1001, daysAgo(190), daysAgo(2)),
		monthly.pastDue(5004, 1002, daysAgo(61), now, 3),
		yearly.then(pause, 5005, 1002, daysAgo(120), daysAgo(100)),
		monthly.expired(5006, 1002, daysAgo(365)),
	}
	all[0].ExternalCustomerID = "crm-7"
	all[0].Metadata = []byte(`{"seats": 3, "campaign": "ramadan"}`)
	all[0].Scheduled = &yearly.variant
	for i := range 42 {
		id, customer, offer := int64(5007+i), int64(1003+i%8), monthly
		if i%2 == 1 {
			offer = yearly
		}
		switch i % 6 {
		case 0:
			all = append(all, offer.sold(id, customer, daysAgo(9*i), now))
		case 1:
			all = append(all, offer.trialing(id, customer, daysAgo(i%14)))
		case 2:
			all = append(all, offer.pastDue(id, customer, daysAgo(9*i), now, i%4))
		case 3:
			at := daysAgo(9 * i)
			if i > 15 {
				at = now.AddDate(0, -badMonth, 0)
			}
			all = append(all, offer.then(pause, id, customer, daysAgo(9*i+5), at))
		case 4:
			all = append(all, offer.then(cancel, id, customer, daysAgo(9*i), daysAgo(3*i)))
		case 5:
			all = append(all, offer.expired(id, customer, daysAgo(400+9*i)))
		}
	}
	for i := range 6 {
		all = append(all, magazine.sold(int64(6001+i), int64(2001+i%2), daysAgo(20*i), now))
	}
	return all
}

type offer struct {
	store    int64
	currency string
	product  subscriptions.Product
	variant  subscriptions.Variant
}

func offersOf(s *store.Store, products []*cart.Product) (offers []offer) {
	for _, p := range products {
		product := subscriptions.Product{ID: p.ID, Name: p.Name, Slug: p.Slug, Type: p.Type}
		for _, v := range p.Plans {
			offers = append(offers, offer{s.ID, s.Currency, product, subscriptions.Variant{ID: v.ID, Duration: v.Duration, Price: v.Price}})
		}
	}
	return offers
}

// sold returns a subscription in the period that contains moment, at the plan's price.
// Every third one has no saved card.
func (o offer) sold(id, customer int64, start, moment time.Time) subscriptions.Subscription {
	s := subscriptions.Subscription{
		ID: id, StoreID: o.store, CustomerID: customer, Status: subscriptions.Active,
		StartsAt: start, Duration: o.variant.Duration, OrderID: 90_000 + id,
		Price: o.variant.Price, Currency: o.currency, Product: o.product, Variant: o.variant,
		CreatedAt: start,
	}
	months := o.variant.Duration.Months()
	for n := 1; !s.PeriodEnd.After(moment); n++ {
		s.PeriodStart, s.PeriodEnd = start.AddDate(0, (n-1)*months, 0), start.AddDate(0, n*months, 0)
	}
	s.EndsAt, s.UpdatedAt = s.PeriodEnd, s.PeriodStart
	if id%3 != 0 {
		s.Card = card(id)
	}
	return s
}

func card(id int64) *subscriptions.Card {
	return &subscriptions.Card{LastFour: strconv.FormatInt(4000+id%1000, 10), Scheme: []string{"visa", "mada", "mastercard"}[id%3]}
}

func (o offer) trialing(id, customer int64, start time.Time) subscriptions.Subscription {
	s := o.sold(id, customer, start, start)
	s.Status = subscriptions.Trialing
	s.TrialEndsAt = start.AddDate(0, 0, 14)
	s.PeriodEnd, s.EndsAt = s.TrialEndsAt, s.TrialEndsAt
	return s
}

// pastDue returns a subscription whose renewal failed yesterday, with grace in days from then.
func (o offer) pastDue(id, customer int64, start, now time.Time, grace int) subscriptions.Subscription {
	s := o.sold(id, customer, start, now)
	s.Status, s.Card = subscriptions.PastDue, card(id) // the card that could not be charged
	failed := now.AddDate(0, 0, -1)
	s.PeriodStart, s.PeriodEnd = failed.AddDate(0, -o.variant.Duration.Months(), 0), failed
	s.StartsAt = earlier(s.StartsAt, s.PeriodStart)
	s.CreatedAt, s.EndsAt, s.UpdatedAt = s.StartsAt, failed, failed
	s.NextRetryAt = now.AddDate(0, 0, 1)
	if grace > 0 {
		s.GraceEndsAt = failed.AddDate(0, 0, grace)
	}
	return s
}

// then returns a subscription in the period in which it changed.
func (o offer) then(happens change, id, customer int64, start, at time.Time) subscriptions.Subscription {
	s := o.sold(id, customer, start, at)
	happens(&s, at)
	return s
}

func pause(s *subscriptions.Subscription, at time.Time) {
	s.PausedRemainingDays = s.DaysRemaining(at)
	s.Status, s.PausedAt, s.UpdatedAt = subscriptions.Paused, at, at
}

// reasons are why customers cancel. Not all say it.
var reasons = [...]string{"Too expensive", "", "Not used any more"}

func cancel(s *subscriptions.Subscription, at time.Time) {
	s.CancellationReason = reasons[s.ID/2%int64(len(reasons))]
	s.Status, s.CancelAtPeriodEnd, s.CanceledAt, s.UpdatedAt = subscriptions.Canceled, true, at, at
}

func (o offer) expired(id, customer int64, start time.Time) subscriptions.Subscription {
	s := o.sold(id, customer, start, start)
	end(&s, subscriptions.Expired, s.PeriodEnd)
	return s
}

// end ends the period, unless it has already ended.
func end(s *subscriptions.Subscription, status subscriptions.Status, at time.Time) {
	s.PeriodEnd = earlier(s.PeriodEnd, at)
	s.Status, s.EndsAt, s.UpdatedAt = status, s.PeriodEnd, at
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
