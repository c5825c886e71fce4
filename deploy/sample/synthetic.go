package sample

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
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

// syntheticProducts returns the product that each synthetic store sells.
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

const (
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
	offers := offersOf(LongListStore(), syntheticProducts("SAR"))
	return func(yield func(subscriptions.Subscription) bool) {
		for i := range n {
			id, customer := longListFirst+int64(i), longListCustomer+int64(i%((n+3)/4))
			if !yield(offers[i%len(offers)].aged(id, id, customer, boughtAt(i, n, now), now)) {
				return
			}
		}
	}
}

// boughtAt returns when subscription i of n was bought, in the two years before now.
func boughtAt(i, n int, now time.Time) time.Time {
	begin := now.AddDate(-2, 0, 0)
	return begin.Add(now.Sub(begin) / time.Duration(n) * time.Duration(i)).Truncate(time.Second)
}

// aged returns a subscription as it may be now if it was bought at start: half of them, by roll,
// are active. Only a recent one is on trial, and only one that is older than its first period
// has expired.
func (o offer) aged(roll, id, customer int64, start, now time.Time) subscriptions.Subscription {
	age := now.Sub(start)
	const day = 24 * time.Hour
	switch roll %= 20; {
	case roll < 10 && age < 13*day:
		return o.trialing(id, customer, start)
	case roll == 10:
		return o.pastDue(id, customer, start, now, int(id%4))
	case roll == 11 && age > 5*day:
		return o.then(pause, id, customer, start, now.AddDate(0, 0, -4))
	case roll > 11 && roll < 15:
		return o.then(cancel, id, customer, start, now.Add(-age/3))
	case roll > 15 && start.AddDate(0, o.variant.Duration.Months(), 0).Before(now):
		return o.expired(id, customer, start)
	}
	return o.sold(id, customer, start, now)
}

// callingCodeOf returns the calling code of customer i.
func callingCodeOf(i int) string {
	return []string{"966", "966", "966", "971", "965", "20", "1"}[i%7]
}

// Generator makes synthetic subscriptions, for lists as long as those in production.
// Each row is a function of its number, so a million rows need no memory. A tenth of
// the subscriptions belong to the sample's first store, so that its list is long; the
// others are spread evenly over up to 999 generated stores. One customer of the first
// store has many subscriptions, so that lists of one customer have several pages.
type Generator struct {
	Subscriptions, Customers int            // that Write adds
	Stores                   []*store.Store // the sample's first store, then the generated ones

	now      time.Time
	products map[int64][]*cart.Product
	offers   [][]offer // of each store

	firstCustomer, firstID int64 // set by reserveIDs
}

// NewGenerator returns a Generator of n subscriptions, with dates in the two years
// before now.
func NewGenerator(n int, now time.Time) *Generator {
	g := &Generator{Subscriptions: n, Stores: Stores()[:1], now: now.UTC().Truncate(time.Second), products: Products()}
	for i := range min(max(n/1000, 1), 999) {
		id, currency := int64(1001+i), []string{"SAR", "AED", "USD", "KWD", "JPY"}[i%5]
		s := syntheticStore(id, fmt.Sprintf("Store %d", id), currency)
		s.PublicKeys = []string{fmt.Sprintf("pk_synthetic_%d", id)}
		g.Stores, g.products[id] = append(g.Stores, s), syntheticProducts(currency)
	}
	for _, s := range g.Stores {
		g.offers = append(g.offers, offersOf(s, g.products[s.ID]))
	}
	g.Customers = max(n/3, 2*len(g.Stores)) // three subscriptions each, on average
	return g
}

// Rows returns the number of customers and subscriptions that Write adds.
func (g *Generator) Rows() int { return g.Customers + g.Subscriptions }

// Write adds the stores, customers, cards and subscriptions to a database that has
// the sample's stores and products. It calls progress after each 1,000 customers or
// subscriptions, or fewer, with their number: the calls add up to Rows. Write is not one
// transaction: an error leaves the rows written so far. Only one Write may run on a
// database at a time.
func (g *Generator) Write(ctx context.Context, db *pgxpool.Pool, progress func(rows int)) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return WriteStores(ctx, tx, g.Stores[1:], g.products, nil) })
	if err != nil {
		return err
	}
	if err := g.reserveIDs(ctx, db); err != nil {
		return fmt.Errorf("reserve ids: %w", err)
	}
	for from := 0; from < g.Customers; from += copyRows {
		var customers [][]any
		for i := from; i < min(from+copyRows, g.Customers); i++ {
			customers = append(customers, g.customer(i))
		}
		if err := copyTo(ctx, db, "customers", ofCustomer, customers); err != nil {
			return err
		}
		progress(len(customers))
	}
	for from := 0; from < g.Subscriptions; from += copyRows {
		var cards, rows [][]any
		for i := from; i < min(from+copyRows, g.Subscriptions); i++ {
			s, callingCode := g.subscription(i)
			if card := cardRow(s); card != nil {
				cards = append(cards, card)
			}
			rows = append(rows, subscriptionRow(s, callingCode))
		}
		if err := copyTo(ctx, db, "saved_cards", ofCard, cards); err != nil {
			return err
		}
		if err := copyTo(ctx, db, "subscriptions", ofSubscription, rows); err != nil {
			return err
		}
		progress(len(rows))
	}
	// Postgres answers a list from its index alone only where it knows that all rows
	// are visible.
	if _, err := db.Exec(ctx, "VACUUM (ANALYZE) stores, products, plans, customers, saved_cards, subscriptions"); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// copyTo copies rows to a table, which begin with their store and id.
func copyTo(ctx context.Context, db *pgxpool.Pool, table, columns string, rows [][]any) error {
	_, err := db.CopyFrom(ctx, pgx.Identifier{table}, strings.Split(byID+", "+columns, ", "), pgx.CopyFromRows(rows))
	if err != nil {
		return fmt.Errorf("copy %s: %w", table, err)
	}
	return nil
}

// copyRows is the number of rows in one COPY. Postgres keeps every row of a
// statement in memory until it has checked the row's foreign keys.
const copyRows = 1000

// reserveIDs finds ids that no row has yet. A card has the id of its subscription.
func (g *Generator) reserveIDs(ctx context.Context, db *pgxpool.Pool) error {
	if err := db.QueryRow(ctx, "SELECT greatest(max(id), 999999) + 1 FROM customers").Scan(&g.firstCustomer); err != nil {
		return err
	}
	return db.QueryRow(ctx, `
		WITH next AS (SELECT greatest(nextval(pg_get_serial_sequence('saved_cards', 'id')), nextval(pg_get_serial_sequence('subscriptions', 'id'))) AS id)
		SELECT id, setval(pg_get_serial_sequence('saved_cards', 'id'), id + $1), setval(pg_get_serial_sequence('subscriptions', 'id'), id + $1) FROM next`,
		g.Subscriptions).Scan(&g.firstID, nil, nil)
}

// storeOf returns the number of the store of customer i. The first tenth belong to the sample's
// store; the others are dealt out to the generated stores in turn.
func (g *Generator) storeOf(i int) int {
	if i < g.Customers/10 {
		return 0
	}
	return 1 + i%(len(g.Stores)-1)
}

func (g *Generator) customer(i int) []any {
	id := g.firstCustomer + int64(i)
	return []any{
		g.Stores[g.storeOf(i)].ID, id, fmt.Sprintf("Customer%d@example.com", id),
		strconv.FormatInt(520_000_000+id%10_000_000, 10), callingCodeOf(i),
	}
}

// subscription returns row i and the calling code of its customer.
func (g *Generator) subscription(i int) (subscription *subscriptions.Subscription, callingCode string) {
	random := rand.New(rand.NewPCG(uint64(g.firstID), uint64(i)))
	customer := random.IntN(g.Customers)
	if random.IntN(1000) == 0 { // the customer with many
		customer = 0
	}
	offers := g.offers[g.storeOf(customer)]
	s := offers[random.IntN(len(offers))].aged(random.Int64N(20), g.firstID+int64(i), g.firstCustomer+int64(customer), boughtAt(i, g.Subscriptions, g.now), g.now)
	if random.IntN(2) == 0 {
		s.ExternalCustomerID = "crm-" + strconv.Itoa(customer)
	}
	if random.IntN(4) == 0 {
		s.Metadata = []byte(`{"campaign": "c` + strconv.Itoa(random.IntN(100)) + `", "seats": ` + strconv.Itoa(1+random.IntN(9)) + `}`)
	}
	return &s, callingCodeOf(customer)
}
