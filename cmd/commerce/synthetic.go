package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/deploy/sample"
	"commerce/subscriptions"
)

// market is a store, and what can be subscribed to there.
type market struct {
	store    *store.Store
	products []*cart.Product
}

// crowd is a number of synthetic subscriptions. Each row is a function of its
// number, so that nothing has to be kept while a million of them are written. A
// tenth are the sample store's, so that its list is long; the rest are spread
// evenly over up to 999 stores.
type crowd struct {
	n         int
	now       time.Time
	markets   []market // the sample store first
	customers int      // in all

	firstCustomer, firstCard, firstID int64
}

const (
	maxMarkets      = 1000
	perCustomer     = 3 // subscriptions, on average
	firstMarket     = 1001
	shareOfTheFirst = 10 // a tenth
)

func newCrowd(n int, now time.Time) *crowd {
	c := &crowd{n: n, now: now.UTC().Truncate(time.Second)}
	c.markets = append(c.markets, market{sample.Stores()[0], sample.Products()[1]})
	for i := range min(max(n/1000, 1), maxMarkets-1) {
		c.markets = append(c.markets, newMarket(int64(firstMarket+i)))
	}
	c.customers = max(n/perCustomer, 2*len(c.markets))
	return c
}

// newMarket is a store in one of several currencies, with two products of four
// plans each.
func newMarket(id int64) market {
	currency := []string{"SAR", "AED", "USD", "KWD", "JPY"}[id%5]
	language := []locale.Locale{locale.En, locale.Ar}[id%2]
	m := market{store: &store.Store{
		ID: id, Name: fmt.Sprintf("Store %d", id), PublicKeys: []string{fmt.Sprintf("pk_synthetic_%d", id)},
		Currency: currency, Locale: language, PricesIncludeTax: true,
	}}
	unit := money.Amount(1)
	for digits, _ := money.Digits(currency); digits > 0; digits-- {
		unit *= 10
	}
	for i, name := range []string{"Streaming", "Cloud storage"} {
		p := &cart.Product{
			ID: int64(1 + i), Name: name, Slug: []string{"streaming", "cloud-storage"}[i], Type: "subscription", Active: true, MinQuantity: 1,
		}
		for k, d := range []period.Duration{period.Monthly, period.Quarterly, period.SemiAnnual, period.Annually} {
			p.Plans = append(p.Plans, cart.Plan{ID: int64(10*(1+i) + k), Duration: d, Price: unit * money.Amount(10*d.Months())})
		}
		m.products = append(m.products, p)
	}
	return m
}

// writeMarkets writes the synthetic stores. The sample's is there.
func writeMarkets(ctx context.Context, db *pgxpool.Pool, markets []market) error {
	var stores []*store.Store
	products := map[int64][]*cart.Product{}
	for _, m := range markets[1:] {
		stores = append(stores, m.store)
		products[m.store.ID] = m.products
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		return sample.WriteShops(ctx, tx, stores, products, nil)
	})
}

// reserveIDs finds ids that nothing has. Of two seeds at once the caller lets one
// wait.
func (c *crowd) reserveIDs(ctx context.Context, db *pgxpool.Pool) error {
	const reserve = "SELECT setval(pg_get_serial_sequence($1, 'id'), nextval(pg_get_serial_sequence($1, 'id')) + $2) - $2"
	if err := db.QueryRow(ctx, "SELECT greatest(max(id), 999999) + 1 FROM customers").Scan(&c.firstCustomer); err != nil {
		return err
	}
	if err := db.QueryRow(ctx, reserve, "saved_cards", c.cards()).Scan(&c.firstCard); err != nil {
		return err
	}
	return db.QueryRow(ctx, reserve, "subscriptions", c.n).Scan(&c.firstID)
}

// home is the market of customer i: the first's share come first, then each
// market's customers are those whose numbers leave the same rest.
func (c *crowd) home(i int) *market {
	if i < c.customers/shareOfTheFirst {
		return &c.markets[0]
	}
	return &c.markets[1+i%(len(c.markets)-1)]
}

var callingCodes = []string{"966", "966", "966", "971", "965", "20", "1"}

func callingCodeOf(customer int) string { return callingCodes[customer%len(callingCodes)] }

func (c *crowd) customer(i int) []any {
	id := c.firstCustomer + int64(i)
	return []any{
		c.home(i).store.ID, id, fmt.Sprintf("Customer%d@example.com", id),
		strconv.FormatInt(520_000_000+id%10_000_000, 10), callingCodeOf(i),
	}
}

// cards is how many there are: the first four of every five customers have one.
func (c *crowd) cards() int { return c.customers / 5 * 4 }

// card i belongs to customer i/4*5 + i%4.
func (c *crowd) card(i int) []any {
	owner := i/4*5 + i%4
	return []any{
		c.home(owner).store.ID, c.firstCard + int64(i), c.firstCustomer + int64(owner),
		fmt.Sprintf("%04d", i%10_000), []string{"visa", "mada", "mastercard"}[i%3],
	}
}

// cardOf is the number of the customer's card, if there is one.
func (c *crowd) cardOf(customer int) (i int, ok bool) {
	i = customer/5*4 + customer%5
	return i, customer%5 < 4 && i < c.cards()
}

// subscription i was bought i/n of the way through the last two years.
func (c *crowd) subscription(i int) []any {
	random := rand.New(rand.NewPCG(uint64(c.firstID), uint64(i)))
	customer := random.IntN(c.customers)
	m := c.home(customer)
	s := c.bought(random, m, i)
	s.ID, s.StoreID, s.CustomerID = c.firstID+int64(i), m.store.ID, c.firstCustomer+int64(customer)
	s.OrderID, s.Currency = s.ID, m.store.Currency
	if random.IntN(2) == 0 {
		s.ExternalCustomerID = "crm-" + strconv.Itoa(customer)
	}
	if random.IntN(4) == 0 {
		s.Metadata = []byte(`{"campaign": "c` + strconv.Itoa(random.IntN(100)) + `", "seats": ` + strconv.Itoa(1+random.IntN(9)) + `}`)
	}
	card, has := c.cardOf(customer)
	if has {
		s.Card = &subscriptions.Card{}
	}
	c.live(random, &s)
	return sample.SubscriptionRow(&s, callingCodeOf(customer), c.firstCard+int64(card))
}

// bought chooses a plan, and puts the subscription into the period that holds now.
func (c *crowd) bought(random *rand.Rand, m *market, i int) subscriptions.Subscription {
	var product *cart.Product
	for product == nil || len(product.Plans) == 0 {
		product = m.products[random.IntN(len(m.products))]
	}
	plan := product.Plans[random.IntN(len(product.Plans))]
	const span = 2 * 365 * 24 * time.Hour
	start := c.now.Add(-span + time.Duration(float64(span)*float64(i)/float64(c.n))).Truncate(time.Microsecond)
	periods := 0
	for start.AddDate(0, (periods+1)*plan.Duration.Months(), 0).Before(c.now) {
		periods++
	}
	s := subscriptions.Subscription{
		Status: subscriptions.Active, StartsAt: start, CreatedAt: start, Duration: plan.Duration, Price: plan.Price,
		Product: subscriptions.Product{ID: product.ID}, Variant: subscriptions.Variant{ID: plan.ID},
		PeriodStart: start.AddDate(0, periods*plan.Duration.Months(), 0),
		PeriodEnd:   start.AddDate(0, (periods+1)*plan.Duration.Months(), 0),
	}
	s.EndsAt, s.UpdatedAt = s.PeriodEnd, s.PeriodStart
	return s
}

// live moves an active subscription on into one of the six states: six in ten stay.
func (c *crowd) live(random *rand.Rand, s *subscriptions.Subscription) {
	age := c.now.Sub(s.PeriodStart)
	within := s.PeriodStart.Add(time.Duration(random.Int64N(int64(age)/1000+1)) * 1000)
	switch roll := random.IntN(100); {
	case roll < 60:
	case roll < 66:
		s.Status, s.TrialEndsAt = subscriptions.Trialing, s.PeriodEnd
	case roll < 71:
		s.Status, s.NextRetryAt = subscriptions.PastDue, c.now.AddDate(0, 0, 1+random.IntN(3))
		s.PeriodEnd = within.Add(time.Second)
		s.EndsAt, s.UpdatedAt = s.PeriodEnd, s.PeriodEnd
		s.GraceEndsAt = s.PeriodEnd.AddDate(0, 0, 7)
	case roll < 75:
		s.Status, s.PausedAt, s.UpdatedAt = subscriptions.Paused, within, within
		s.PausedRemainingDays = int(s.PeriodEnd.Sub(within) / (24 * time.Hour))
	case roll < 88:
		s.Status, s.CancelAtPeriodEnd, s.CanceledAt, s.UpdatedAt = subscriptions.Canceled, true, within, within
	default:
		s.Status, s.UpdatedAt = subscriptions.Expired, within
		s.PeriodEnd = within.Add(time.Second)
		s.EndsAt = s.PeriodEnd
	}
}
