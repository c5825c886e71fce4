package sample

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/subscriptions"
)

// Generator makes synthetic subscriptions, for lists as long as those in production.
// Each row is a function of its number, so a million rows need no memory. A tenth of
// the subscriptions belong to the sample's first store, so that its list is long; the
// others are spread evenly over up to 999 generated stores. One customer of the first
// store has many subscriptions, so that lists of one customer have several pages.
type Generator struct {
	n         int
	now       time.Time
	stores    []storeSpec // the sample's first store, then the generated ones
	customers int         // of all stores

	firstCustomer, firstCard, firstID int64 // set by reserveIDs
}

// storeSpec is a store and the products with plans that it sells.
type storeSpec struct {
	store    *store.Store
	products []*cart.Product
}

const (
	maxStores        = 1000
	perCustomer      = 3 // subscriptions, on average
	firstStoreID     = 1001
	firstStoresShare = 10   // one in ten customers
	manyShare        = 1000 // one in a thousand subscriptions belongs to the first customer
)

// NewGenerator returns a Generator of n subscriptions, with dates in the two years
// before now.
func NewGenerator(n int, now time.Time) *Generator {
	g := &Generator{n: n, now: now.UTC().Truncate(time.Second)}
	g.stores = append(g.stores, storeSpec{Stores()[0], Products()[1]})
	for i := range min(max(n/1000, 1), maxStores-1) {
		g.stores = append(g.stores, newStoreSpec(int64(firstStoreID+i)))
	}
	g.customers = max(n/perCustomer, 2*len(g.stores))
	return g
}

// Subscriptions returns the number of subscriptions that Write adds.
func (g *Generator) Subscriptions() int { return g.n }

// Stores returns the number of stores that have the subscriptions.
func (g *Generator) Stores() int { return len(g.stores) }

// Customers returns the number of customers that Write adds.
func (g *Generator) Customers() int { return g.customers }

// Rows returns the number of customers, cards and subscriptions that Write adds.
func (g *Generator) Rows() int { return g.n + g.customers + g.cards() }

// newStoreSpec returns a store in one of several currencies, with two products of
// four plans each.
func newStoreSpec(id int64) storeSpec {
	currency := []string{"SAR", "AED", "USD", "KWD", "JPY"}[id%5]
	language := []locale.Locale{locale.En, locale.Ar}[id%2]
	spec := storeSpec{store: &store.Store{
		ID: id, Name: fmt.Sprintf("Store %d", id), PublicKeys: []string{fmt.Sprintf("pk_synthetic_%d", id)},
		Currency: currency, Locale: language, PricesIncludeTax: true,
	}}
	unit := money.Amount(1)
	for digits, _ := money.Digits(currency); digits > 0; digits-- {
		unit *= 10
	}
	for i, name := range []string{"Streaming", "Cloud storage"} {
		p := &cart.Product{
			ID: int64(1 + i), Name: locale.Named(name), Slug: []string{"streaming", "cloud-storage"}[i], Type: "subscription", Active: true, MinQuantity: 1, Step: 1,
		}
		for k, d := range []period.Duration{period.Monthly, period.Quarterly, period.SemiAnnual, period.Annually} {
			p.Plans = append(p.Plans, cart.Plan{ID: int64(10*(1+i) + k), Duration: d, Price: unit * money.Amount(10*d.Months())})
		}
		spec.products = append(spec.products, p)
	}
	return spec
}

// storeOf returns the store of customer i. The first tenth belong to the sample's
// store; the others are dealt out to the generated stores in turn.
func (g *Generator) storeOf(i int) *storeSpec {
	if i < g.customers/firstStoresShare {
		return &g.stores[0]
	}
	return &g.stores[1+i%(len(g.stores)-1)]
}

var callingCodes = []string{"966", "966", "966", "971", "965", "20", "1"}

func callingCodeOf(customer int) string { return callingCodes[customer%len(callingCodes)] }

func (g *Generator) customer(i int) []any {
	id := g.firstCustomer + int64(i)
	return []any{
		g.storeOf(i).store.ID, id, fmt.Sprintf("Customer%d@example.com", id),
		strconv.FormatInt(520_000_000+id%10_000_000, 10), callingCodeOf(i),
	}
}

// cards returns the number of cards: the first four of every five customers have one.
func (g *Generator) cards() int { return g.customers / 5 * 4 }

// card returns row i, which belongs to customer i/4*5 + i%4.
func (g *Generator) card(i int) []any {
	owner := i/4*5 + i%4
	return []any{
		g.storeOf(owner).store.ID, g.firstCard + int64(i), g.firstCustomer + int64(owner),
		fmt.Sprintf("%04d", i%10_000), []string{"visa", "mada", "mastercard"}[i%3],
	}
}

// cardOf returns the row number of a customer's card; ok is false if there is none.
func (g *Generator) cardOf(customer int) (i int, ok bool) {
	i = customer/5*4 + customer%5
	return i, customer%5 < 4 && i < g.cards()
}

// subscription returns row i, which was bought i/n of the way through the last two years.
func (g *Generator) subscription(i int) []any {
	random := rand.New(rand.NewPCG(uint64(g.firstID), uint64(i)))
	customer := random.IntN(g.customers)
	if random.IntN(manyShare) == 0 {
		customer = 0
	}
	spec := g.storeOf(customer)
	s := g.bought(random, spec, i)
	s.ID, s.StoreID, s.CustomerID = g.firstID+int64(i), spec.store.ID, g.firstCustomer+int64(customer)
	s.OrderID, s.Currency = s.ID, spec.store.Currency
	if random.IntN(2) == 0 {
		s.ExternalCustomerID = "crm-" + strconv.Itoa(customer)
	}
	if random.IntN(4) == 0 {
		s.Metadata = []byte(`{"campaign": "c` + strconv.Itoa(random.IntN(100)) + `", "seats": ` + strconv.Itoa(1+random.IntN(9)) + `}`)
	}
	card, ok := g.cardOf(customer)
	if ok {
		s.Card = &subscriptions.Card{}
	}
	g.changeStatus(random, &s)
	return subscriptionRow(&s, callingCodeOf(customer), g.firstCard+int64(card))
}

// bought chooses a plan and puts the subscription into its current period.
func (g *Generator) bought(random *rand.Rand, spec *storeSpec, i int) subscriptions.Subscription {
	var product *cart.Product
	for product == nil || len(product.Plans) == 0 {
		product = spec.products[random.IntN(len(spec.products))]
	}
	plan := product.Plans[random.IntN(len(product.Plans))]
	const span = 2 * 365 * 24 * time.Hour
	start := g.now.Add(-span + time.Duration(float64(span)*float64(i)/float64(g.n))).Truncate(time.Microsecond)
	periods := 0
	for start.AddDate(0, (periods+1)*plan.Duration.Months(), 0).Before(g.now) {
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

// changeStatus moves an active subscription to one of the six statuses; 60 % stay active.
func (g *Generator) changeStatus(random *rand.Rand, s *subscriptions.Subscription) {
	age := g.now.Sub(s.PeriodStart)
	within := s.PeriodStart.Add(time.Duration(random.Int64N(int64(age)/1000+1)) * 1000)
	switch roll := random.IntN(100); {
	case roll < 60:
	case roll < 66:
		s.Status, s.TrialEndsAt = subscriptions.Trialing, s.PeriodEnd
	case roll < 71:
		s.Status, s.NextRetryAt = subscriptions.PastDue, g.now.AddDate(0, 0, 1+random.IntN(3))
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
