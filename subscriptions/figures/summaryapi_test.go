package figures_test

import (
	"encoding/json"
	"math"
	"math/big"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/suite"
)

// summary is a summary as a client decodes it.
type summary struct {
	AsOf     string           `json:"as_of"`
	ByStatus map[string]int64 `json:"by_status"`
	Ending   int64
	MRR      []revenue
}

type revenue struct {
	Currency      string
	Amount        json.Number
	Subscriptions int64
}

// summary requests a store's summary, which must succeed.
func summaryOf(t rapid.TB, b suite.Bundle, store int64) summary {
	t.Helper()
	w := b.Do("/subscriptions/summary", store, "en")
	var body struct{ Data summary }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK {
		t.Fatalf("GET /subscriptions/summary: %d %s (%v)", w.Code, w.Body, err)
	}
	return body.Data
}

func TestSummary_MatchesGoldenFile(t *testing.T) {
	t.Parallel()
	d := suite.SixStates()
	d.All[0].CancelAtPeriodEnd = true
	d.All[2].Duration, d.All[2].Currency, d.All[2].Price = period.Annually, "KWD", 100_000
	suite.OnEach(t, d, func(t *testing.T, b suite.Bundle) {
		for _, language := range []string{"en", "ar"} { // on which the answer does not depend
			suite.Golden(t, "summary", b, "/subscriptions/summary", language)
		}
	})
}

var durations = []period.Duration{
	period.Monthly, period.Quarterly, period.SemiAnnual, period.Annually, period.Biennial, period.Quinquennial, period.Decennial,
}

// someSubscriptions draws the subscriptions of two stores, in currencies with 0, 2 and 3
// decimals.
func someSubscriptions(t *rapid.T) []subscriptions.Subscription {
	states := suite.SixStates().All
	prices := rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(0, 1_000_000_000_000))
	var all []subscriptions.Subscription
	for id := range rapid.Int64Range(0, 40).Draw(t, "subscriptions") {
		s := rapid.SampledFrom(states).Draw(t, "state")
		s.ID, s.StoreID = id+1, rapid.Int64Range(1, 2).Draw(t, "store")
		s.Currency = rapid.SampledFrom([]string{"SAR", "JPY", "KWD", "USD"}).Draw(t, "currency")
		s.Duration = rapid.SampledFrom(durations).Draw(t, "duration")
		s.Price = money.Amount(prices.Draw(t, "price"))
		s.CancelAtPeriodEnd = rapid.Bool().Draw(t, "ending")
		s.Card, s.Scheduled = nil, nil
		all = append(all, s)
	}
	return all
}

// recount makes a store's summary from its subscriptions, one by one.
func recount(all []subscriptions.Subscription, store int64) summary {
	want := summary{
		AsOf:     "2025-11-20T10:00:00.123456Z",
		ByStatus: map[string]int64{"trialing": 0, "active": 0, "past_due": 0, "paused": 0, "canceled": 0, "expired": 0},
		MRR:      []revenue{},
	}
	for _, currency := range []string{"JPY", "KWD", "SAR", "USD"} {
		sum, n := new(big.Rat), int64(0)
		for _, s := range all {
			if s.StoreID == store && s.Currency == currency && (s.Status == "active" || s.Status == "past_due") {
				sum.Add(sum, big.NewRat(int64(s.Price), int64(s.Duration.Months())))
				n++
			}
		}
		if n > 0 {
			want.MRR = append(want.MRR, revenue{currency, inMajor(nearest(sum), currency), n})
		}
	}
	for _, s := range all {
		if s.StoreID == store {
			want.ByStatus[string(s.Status)]++
			if s.CancelAtPeriodEnd && (s.Status == "active" || s.Status == "trialing") {
				want.Ending++
			}
		}
	}
	return want
}

// nearest rounds an amount of at least 0 half up.
func nearest(minor *big.Rat) int64 {
	raised := new(big.Rat).Add(minor, big.NewRat(1, 2))
	return new(big.Int).Quo(raised.Num(), raised.Denom()).Int64()
}

// inMajor writes an amount as the shortest number.
func inMajor(minor int64, currency string) json.Number {
	digits := map[string]int{"JPY": 0, "KWD": 3, "SAR": 2, "USD": 2}[currency]
	return json.Number(money.AppendMajor(nil, money.Amount(minor), digits))
}

// customersOfBoth are the customer of the subscriptions, in two stores.
func customersOfBoth() []subscriptions.Customer {
	customers := suite.SixStates().Customers
	second := customers[0]
	second.StoreID = 2
	return append(customers, second)
}

func TestSummary_EqualsARecount(t *testing.T) {
	t.Parallel()
	wantRecount := func(t *rapid.T, source suite.Source, all []subscriptions.Subscription) {
		b := suite.NewBundle(source)
		for _, store := range []int64{1, 2, 3} {
			if diff := cmp.Diff(recount(all, store), summaryOf(t, b, store)); diff != "" {
				t.Errorf("store %d (-want +got):\n%s", store, diff)
			}
		}
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			all := someSubscriptions(t)
			wantRecount(t, suite.NewMemory(nil, all), all)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		d := suite.Data{Customers: customersOfBoth(), All: slices.Concat(suite.SixStates().All, suite.SixStates().All)}
		for i := range suite.SixStates().All {
			d.All[i].StoreID = 2
		}
		pool := suite.Filled(t, d)
		rapid.Check(t, func(rt *rapid.T) {
			all := someSubscriptions(rt)
			replace(t, pool, d.Customers, all)
			wantRecount(rt, suite.Patient(pool), all)
		})
	})
}

// replace makes the given subscriptions the only ones.
func replace(t *testing.T, pool *pgxpool.Pool, customers []subscriptions.Customer, all []subscriptions.Subscription) {
	t.Helper()
	suite.Exec(t, pool, "DELETE FROM subscriptions")
	assert.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return sample.WriteSubscriptions(t.Context(), tx, customers, all)
	}))
}

func TestSummary_RefusesEveryParameter(t *testing.T) {
	t.Parallel()
	suite.OnEach(t, suite.SixStates(), func(t *testing.T, b suite.Bundle) {
		for query, want := range map[string][]string{
			"status=active":           {"status"},
			"page=1&customerEmail=":   {"customerEmail", "page"},
			"as_of=x&as_of=y":         {"as_of"},
			"=":                       {"query"},
			"%zz":                     {"query"},
			"per_page=1&cursor=abc&x": {"cursor", "per_page", "x"},
		} {
			b.Names(t, "/subscriptions/summary?"+query, want)
		}
		assert.Equal(t, b.Do("/subscriptions/summary?", 1, "en").Code, http.StatusOK, "an empty query")
	})
}

// A figure that cannot be shown makes the summary unavailable, and the log says why.
func TestSummary_WithoutARightFigureIsUnavailable(t *testing.T) {
	t.Parallel()
	foreign, huge := suite.SixStates(), suite.SixStates()
	foreign.All[1].Currency = "XYZ"
	huge.All[1].Price, huge.All[2].Price = math.MaxInt64, math.MaxInt64
	pool := suite.Filled(t, suite.SixStates())
	suite.Exec(t, pool, "ALTER TABLE subscriptions DROP CONSTRAINT subscription_price_is_in_range, DROP CONSTRAINT subscription_currency_is_known")
	for want, d := range map[string]suite.Data{`unknown currency "XYZ"`: foreign, "monthly revenue in SAR": huge} {
		replace(t, pool, d.Customers, d.All)
		for _, source := range []suite.Source{suite.NewMemory(d.Customers, d.All), suite.Patient(pool)} {
			suite.NewBundle(source).WantRefused(t, "/subscriptions/summary", 1, "unavailable", want)
		}
	}
}

// slowTotals makes statements slow on connections whose search path begins with the schema
// slow, and no others.
const slowTotals = `CREATE SCHEMA slow; CREATE VIEW slow.subscriptions AS
	SELECT * FROM public.subscriptions WHERE (SELECT pg_sleep(60)::text) IS NOT NULL`

// slowPool returns a pool for summaries whose statements do not end before their timeout.
func slowPool(t *testing.T, pool *pgxpool.Pool, timeout time.Duration) *pgxpool.Pool {
	t.Helper()
	suite.SkipBehindPooler(t)
	suite.Exec(t, pool, slowTotals)
	return ephemeral.OpenPool(t, pool.Config().ConnString(), connect.PostgresConfig{
		MaxConns: 2, StatementTimeout: timeout,
		Settings: map[string]string{"search_path": "slow, public"},
	})
}

// While every connection for summaries is in use, callers of summaries are refused after
// 2 s, and lists are not affected.
func TestSummary_ASlowOneDoesNotDelayLists(t *testing.T) {
	t.Parallel()
	pool := suite.Filled(t, suite.SampleData())
	summaries := slowPool(t, pool, ephemeral.Patience(10*time.Second))
	lists := ephemeral.OpenPool(t, pool.Config().ConnString(), connect.PostgresConfig{MaxConns: 2})
	b := suite.NewBundle(suite.Parts{Config: suite.PatientConfig(lists), Sums: summaries, Base: t.Context()}.Source())
	var callers sync.WaitGroup
	for i := range int64(20) {
		callers.Go(func() {
			began := time.Now()
			refused := b.Refused(t, "/subscriptions/summary", 1+i%4)
			took := time.Since(began)
			assert.That(t, refused.Code == "unavailable" && took >= time.Second && took <= ephemeral.Patience(5*time.Second),
				"a slow summary: %+v after %v, want unavailable after 2s", refused, took)
		})
	}
	ephemeral.Eventually(t, "the summaries run", func() bool { return summaries.Stat().AcquiredConns() == 2 })
	for range 20 {
		b.List(t, "/subscriptions", 1)
	}
	callers.Wait()
	assert.That(t, lists.Stat().NewConnsCount() <= 2, "%d connections for lists", lists.Stat().NewConnsCount())
}
