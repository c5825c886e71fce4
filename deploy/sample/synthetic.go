package sample

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/subscriptions"
)

// LongListStore returns a store of the demo that only has subscriptions, those of LongList.
func LongListStore() *store.Store { return syntheticStore(3, "Long list", "SAR") }

func syntheticStore(id int64, name, currency string) *store.Store {
	return &store.Store{ID: id, Name: name, Currency: currency, Locale: locale.En, TaxRate: 150_000, PricesIncludeTax: true}
}

func syntheticProducts(currency string) []*cart.Product {
	unit := money.Amount(1)
	for digits, _ := money.Digits(currency); digits > 0; digits-- {
		unit *= 10
	}
	return []*cart.Product{product(31, named("Cloud storage", "تخزين سحابي"), "cloud-storage", 0,
		cart.Plan{ID: 311, Duration: period.Monthly, Price: 19 * unit},
		cart.Plan{ID: 312, Duration: period.Quarterly, Price: 49 * unit},
		cart.Plan{ID: 313, Duration: period.Annually, Price: 190 * unit})}
}

// LongList returns n subscriptions of the LongListStore, so that a list has many pages, and their
// customers, who have four each. Dates are relative to now.
func LongList(n int, now time.Time) (customers []subscriptions.Customer, all []subscriptions.Subscription) {
	g := newGenerator(n, (n+3)/4, now, map[int64][]*cart.Product{3: syntheticProducts("SAR")}, LongListStore())
	g.firstID, g.firstCustomer = 100_001, 3001
	for i := range g.Customers {
		customers = append(customers, g.customer(i))
	}
	for i := range n {
		all = append(all, g.subscription(i, i%g.Customers))
	}
	return customers, all
}

// aged returns a subscription as it may be now if it was bought at start: half of them
// are active. Only a recent one is on trial, and only one that is older than its first period
// has expired.
func (o offer) aged(id, customer int64, start, now time.Time) subscriptions.Subscription {
	age := now.Sub(start)
	const day = 24 * time.Hour
	switch roll := id % 20; {
	case roll < 10 && age < 13*day:
		return o.trialing(id, customer, start)
	case roll == 10:
		return o.pastDue(id, customer, start, now, int(id/20%4))
	case roll == 11 && age > 5*day:
		return o.then(pause, id, customer, start, now.AddDate(0, 0, -4))
	case roll > 11 && roll < 15:
		return o.then(cancel, id, customer, start, now.Add(-age/3))
	case roll > 15 && start.AddDate(0, o.variant.Duration.Months(), 0).Before(now):
		return o.expired(id, customer, start)
	}
	return o.sold(id, customer, start, now)
}

// Generator makes synthetic subscriptions, for lists as long as those in production. Each is a
// function of its number, so a million of them need no memory. A tenth of the customers belong to
// the first store, so that its list is long.
type Generator struct {
	Subscriptions, Customers int // that Write adds
	Stores                   []*store.Store

	now      time.Time
	products map[int64][]*cart.Product
	offers   [][]offer // of each store

	firstCustomer, firstID int64
}

// NewGenerator returns a Generator of n subscriptions, with dates in the two years before now. Its
// first store is that of the sample. Up to 999 others are new.
func NewGenerator(n int, now time.Time) *Generator {
	stores, products := Stores()[:1], Products()
	for i := range min(max(n/1000, 1), 999) {
		id, currency := int64(1001+i), []string{"SAR", "AED", "USD", "KWD", "JPY"}[i%5]
		s := syntheticStore(id, fmt.Sprintf("Store %d", id), currency)
		s.PublicKeys = []string{fmt.Sprintf("pk_synthetic_%d", id)}
		stores, products[id] = append(stores, s), syntheticProducts(currency)
	}
	return newGenerator(n, max(n/3, min(n, 2*len(stores))), now, products, stores...)
}

func newGenerator(n, customers int, now time.Time, products map[int64][]*cart.Product, stores ...*store.Store) *Generator {
	g := &Generator{Subscriptions: n, Customers: customers, Stores: stores, now: now.UTC().Truncate(time.Second), products: products}
	for _, s := range stores {
		g.offers = append(g.offers, offersOf(s, products[s.ID]))
	}
	return g
}

// Write adds the stores, customers, cards and subscriptions to a database that has the sample's
// stores and products. It calls progress after each 1,000 subscriptions, or fewer, with their
// number. Write is not one transaction: an error leaves what was written so far. Only one Write may
// run on a database at a time.
func (g *Generator) Write(ctx context.Context, db *pgxpool.Pool, progress func(subscriptions int)) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := WriteStores(ctx, tx, g.Stores[1:], g.products, nil); err != nil {
			return err
		}
		return g.reserveIDs(ctx, tx)
	})
	if err != nil {
		return err
	}
	const step = 1000 // Postgres keeps all rows of a COPY in memory until it has checked their foreign keys
	for from := 0; from < g.Subscriptions; from += step {
		var customers, cards, rows [][]any
		for i := from; i < min(from+step, g.Subscriptions); i++ {
			if i < g.Customers {
				customers = append(customers, customerRow(g.customer(i)))
			}
			customer := i % g.Customers
			if i%997 == 0 {
				customer = 0 // who has many, so that lists of one customer have several pages
			}
			s := g.subscription(i, customer)
			if s.Card != nil {
				cards = append(cards, cardRow(&s))
			}
			rows = append(rows, subscriptionRow(&s, g.customer(customer).CallingCode))
		}
		for _, part := range []struct {
			table, columns string
			rows           [][]any
		}{{"customers", ofCustomer, customers}, {"saved_cards", ofCard, cards}, {"subscriptions", ofSubscription, rows}} {
			columns := strings.Split(byID+", "+part.columns, ", ")
			if _, err := db.CopyFrom(ctx, pgx.Identifier{part.table}, columns, pgx.CopyFromRows(part.rows)); err != nil {
				return fmt.Errorf("copy %s: %w", part.table, err)
			}
		}
		progress(len(rows))
	}
	// Postgres answers lists from an index alone only where it knows that all rows are visible.
	if _, err := db.Exec(ctx, "VACUUM (ANALYZE) stores, products, plans, customers, saved_cards, subscriptions"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// reserveIDs finds ids that no row has yet. A card has the id of its subscription.
func (g *Generator) reserveIDs(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, `SELECT (SELECT greatest(max(id), 999999) + 1 FROM customers), greatest(
		nextval(pg_get_serial_sequence('saved_cards', 'id')), nextval(pg_get_serial_sequence('subscriptions', 'id')),
		(SELECT max(id) + 1 FROM saved_cards), (SELECT max(id) + 1 FROM subscriptions))`).Scan(&g.firstCustomer, &g.firstID)
	if err != nil {
		return fmt.Errorf("find unused ids: %w", err)
	}
	var batch pgx.Batch
	continueAfter(&batch, g.firstID+int64(g.Subscriptions))
	return tx.SendBatch(ctx, &batch).Close()
}

func (g *Generator) storeOf(i int) int {
	if i < g.Customers/10 || len(g.Stores) == 1 {
		return 0
	}
	return 1 + i%(len(g.Stores)-1)
}

func (g *Generator) customer(i int) subscriptions.Customer {
	id := g.firstCustomer + int64(i)
	return subscriptions.Customer{
		StoreID: g.Stores[g.storeOf(i)].ID, ID: id, Email: fmt.Sprintf("customer%d@example.com", id),
		Phone: strconv.FormatInt(520_000_000+id%10_000_000, 10), CallingCode: []string{"966", "966", "966", "971", "965", "20", "1"}[i%7],
	}
}

// subscription returns subscription i, of a customer. Its status and its optional fields follow
// from different digits of i, so that each combination occurs.
func (g *Generator) subscription(i, customer int) subscriptions.Subscription {
	offers, id := g.offers[g.storeOf(customer)], g.firstID+int64(i)
	begin := g.now.AddDate(-2, 0, 0)
	start := begin.Add(g.now.Sub(begin) / time.Duration(g.Subscriptions) * time.Duration(i)).Truncate(time.Second)
	s := offers[i%len(offers)].aged(id, g.firstCustomer+int64(customer), start, g.now)
	if i/20%2 == 0 {
		s.ExternalCustomerID = "crm-" + strconv.Itoa(customer)
	}
	if i/40%4 == 0 {
		s.Metadata = fmt.Appendf(nil, `{"campaign": "c%d", "seats": %d}`, i%100, 1+i%9)
	}
	return s
}
