package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"commerce/auth/lastknown"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/cart/price"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time that the sample's dates are relative to.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type queries struct {
	atomic.Int64
	last atomic.Pointer[pgx.TraceQueryStartData]
}

func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	q.Add(1)
	q.last.Store(&query)
	return ctx
}

func (*queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// database is a database with the sample data, and a read-only pool like the service's.
type database struct {
	pool  *pgxpool.Pool
	asked *queries
	admin *pgxpool.Pool
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	url := ephemeral.Migrated(t)
	d := &database{asked: &queries{}}
	d.pool = ephemeral.OpenPool(t, url, connect.PostgresConfig{Edit: func(c *pgxpool.Config) { c.ConnConfig.Tracer = d.asked }})
	d.admin = ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true, StatementTimeout: -1})
	assert.NoError(t, pgx.BeginFunc(t.Context(), d.admin, func(tx pgx.Tx) error {
		if err := sample.WriteStores(t.Context(), tx, sample.Stores(), sample.Products(), sample.Coupons(noon)); err != nil {
			return err
		}
		return sample.WriteCouponUses(t.Context(), tx, sample.CouponUses())
	}))
	return d
}

func (d *database) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := d.admin.Exec(context.WithoutCancel(t.Context()), sql, args...)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}

func newCache(source catalog.Source) *catalog.Cache {
	return catalog.NewCache(catalog.CacheConfig{
		Source: source, Log: slog.New(slog.DiscardHandler),
		Patience: ephemeral.Patience(10 * time.Second),
	})
}

// Every catalog gives the same answers.
func TestCatalogs_AnswerAlike(t *testing.T) {
	t.Parallel()
	memory := catalog.NewMemory(sample.Products())
	for store, coupons := range sample.Coupons(noon) {
		for _, c := range coupons {
			memory.PutCoupon(store, c)
		}
	}
	for _, u := range sample.CouponUses() {
		memory.PutUse(u.Store, u.Code, u.Customer, u.Order)
	}
	postgres := catalog.NewPostgres(newDatabase(t).pool)
	for name, c := range map[string]catalog.Source{
		"memory": memory, "postgres": postgres, "cached memory": newCache(memory), "cached postgres": newCache(postgres),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testProducts(t, c)
			testCoupons(t, c)
			testUses(t, c)
		})
	}
}

func testProducts(t *testing.T, c catalog.Source) {
	t.Helper()
	for store, list := range sample.Products() {
		wanted := map[int64]*cart.Product{}
		ids := []int64{999, -1, 0} // no store has these
		for _, p := range list {
			wanted[p.ID] = p
			ids = append(ids, p.ID)
		}
		for _, ask := range []string{"at first", "again"} {
			got, err := c.Products(t.Context(), store, ids)
			diff := cmp.Diff(wanted, got)
			assert.That(t, err == nil && diff == "", "products of store %d %s: error %v (-want +got):\n%s", store, ask, err, diff)
		}
	}
	for name, ask := range map[string]struct {
		store int64
		ids   []int64
	}{"another store's": {2, []int64{1, 2}}, "no store's": {3, []int64{1}}, "none": {1, nil}} {
		got, err := c.Products(t.Context(), ask.store, ask.ids)
		assert.That(t, err == nil && len(got) == 0, "%s products: %v, %v, want none", name, got, err)
	}
}

func testCoupons(t *testing.T, c catalog.Source) {
	t.Helper()
	coupons := sample.Coupons(noon)[1]
	for _, wanted := range coupons {
		got, err := c.CouponsByKey(t.Context(), 1, wanted.Code)
		diff := cmp.Diff([]*price.Coupon{wanted}, got)
		assert.That(t, err == nil && diff == "", "coupon %s: error %v (-want +got):\n%s", wanted.Code, err, diff)
		got, err = c.CouponsByKey(t.Context(), 2, wanted.Code)
		assert.That(t, err == nil && len(got) == 0, "coupon %s of another store: %v, %v, want none", wanted.Code, got, err)
	}
	automatic := slices.DeleteFunc(coupons, func(c *price.Coupon) bool { return !c.Automatic })
	assert.Equal(t, assert.Must(c.Automatic(t.Context(), 1))(t), automatic, "automatic coupons")
	assert.Equal(t, len(assert.Must(c.Automatic(t.Context(), 2))(t)), 0, "automatic coupons of another store")
}

func testUses(t *testing.T, c catalog.Source) {
	t.Helper()
	for _, ask := range []struct {
		store          int64
		code, customer string
		limit, want    int64
	}{
		{1, "USED", "", 10, 1},
		{1, "USED", "", 1, 1},
		{1, "USED", "1002", 1, 1},
		{1, "USED", "1001", 1, 0},
		{1, "TEN", "", 1, 0},
		{2, "USED", "", 1, 0},
	} {
		got, err := c.Uses(t.Context(), ask.store, ask.code, ask.customer, ask.limit)
		assert.That(t, err == nil && got == ask.want, "%+v: %d, %v", ask, got, err)
	}
}

func TestPostgres_PreparesStatementsAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	c := catalog.NewPostgres(d.pool)
	for range 2 {
		testProducts(t, c)
		testCoupons(t, c)
		testUses(t, c)
		_ = assert.Must(d.pool.Exec(t.Context(), "DISCARD ALL"))(t)
	}
}

// The schema has the limits of package cart, which ensure that a total fits into int64.
func TestPostgres_HasTheLimitsOfPackageCart(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, change := range []struct {
		sql     string
		highest int64
	}{
		{"UPDATE products SET price = $1, original_price = $1 WHERE (store_id, id) = (1, 1)", int64(cart.MaxPrice)},
		{"UPDATE plans SET price = $1 WHERE (store_id, id) = (1, 41)", int64(cart.MaxPrice)},
		{"UPDATE field_options SET price = $1 WHERE (store_id, code) = (1, 'us')", int64(cart.MaxSurcharge)},
		{"UPDATE fields SET position = $1::int - 1 WHERE (store_id, name) = (1, 'Region')", cart.MaxFields},
		{"UPDATE stores SET tax_ppm = $1 WHERE id = 1", cart.MaxTaxRate},
		{"UPDATE products SET tax_ppm = $1 WHERE (store_id, id) = (1, 1)", cart.MaxTaxRate},
	} {
		_, err := d.admin.Exec(t.Context(), change.sql, change.highest)
		assert.That(t, err == nil, "%s with %d: %v", change.sql, change.highest, err)
		_, err = d.admin.Exec(t.Context(), change.sql, change.highest+1)
		assert.That(t, err != nil, "%s with %d is allowed", change.sql, change.highest+1)
	}
}

// A language that is added to locale.All needs a migration.
func TestPostgres_AcceptsNamesInEveryLanguage(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	all := map[locale.Locale]string{}
	for _, l := range locale.All() {
		all[l] = strings.Repeat("ب", 500)
	}
	d.exec(t, "UPDATE products SET names = $1 WHERE (store_id, id) = (1, 1)", all)
	found := assert.Must(catalog.NewPostgres(d.pool).Products(t.Context(), 1, []int64{1}))(t)
	assert.Equal(t, found[1].Name, locale.Name{Own: "Game credit", Others: all}, "name")
}

// Names are in the cache's memory limit: with long ones, fewer products fit.
func TestCache_WeighsTranslations(t *testing.T) {
	t.Parallel()
	const products, size = 200, 4096
	long := locale.Name{Own: "P", Others: map[locale.Locale]string{locale.Ar: strings.Repeat("ب", size)}}
	for part, p := range map[string]cart.Product{
		"product": {Name: long},
		"plan":    {Plans: []cart.Plan{{Label: long}}},
		"option":  {Fields: []cart.Field{{Options: []cart.Option{{Name: long}}}}},
	} {
		memory, ids := catalog.NewMemory(nil), make([]int64, products)
		for i := range ids {
			one := p
			one.ID = int64(i + 1)
			ids[i] = one.ID
			memory.Put(1, &one)
		}
		source := &counting{Source: memory}
		cache := catalog.NewCache(catalog.CacheConfig{Source: source, Memory: products * size, Patience: ephemeral.Patience(10 * time.Second), Now: func() time.Time { return noon }})
		for range 2 {
			assert.Must(cache.Products(t.Context(), 1, ids))(t)
		}
		assert.That(t, source.loaded.Load() > products,
			"%s: all %d products fit, each with %d bytes of names", part, products, 2*size)
	}
}

type counting struct {
	catalog.Source
	loaded atomic.Int64
}

func (c *counting) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	c.loaded.Add(int64(len(ids)))
	return c.Source.Products(ctx, store, ids)
}

// The schema accepts only codes of which the index has the key.
func TestPostgres_FindsEachCouponByItsKey(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	refused := []string{
		"new", "New", " NEW", "NEW ", "NEW\u00a0", "\u3000NEW", "\u2028NEW", "\u0085NEW", "\tNEW",
		"\u0627\u0653", "CAFE\u0301", "caf\u00e9", "f\u0131ve", "\u212a", "stra\u00dfe", strings.Repeat("خ", 65),
	}
	accepted := []string{
		"NEW", "NE W", "خصم", "خصم١٠", "\u0622", "CAF\u00c9", "CAF\u00e9", "F\u0131VE", "\u0130", "\u017f", "STRA\u00dfE",
		"\uff54\uff45\uff4e", "\u01c5", strings.Repeat("خ", 64), strings.Repeat("é", 64),
		"\u200bE\u200b\u0301\u200b", "\u200f NEW \u2069", "NEW\u200f", "N\u00a0\u200bEW", "\u0600NEW", "\U0001f3f4\U000e0067\U000e007f",
	}
	from, _ := cart.CouponFolds()
	for _, r := range from + "\u0085\u00a0\u3000" {
		accepted = append(accepted, fmt.Sprintf("D\u0660%cD", r))
	}
	codes := map[string][]string{} // by key
	for _, code := range append(refused, accepted...) {
		_, err := d.admin.Exec(t.Context(), "INSERT INTO coupons (store_id, code, amount) VALUES (1, $1, 1)", code)
		assert.That(t, (err == nil) == !slices.Contains(refused, code), "%+q: %v", code, err)
		if err == nil {
			key := cart.CouponKey(code)
			codes[key] = append(codes[key], code)
		}
	}
	postgres := catalog.NewPostgres(d.pool)
	for key, wanted := range codes {
		var got []string
		for _, c := range assert.Must(postgres.CouponsByKey(t.Context(), 1, key))(t) {
			got = append(got, c.Code)
		}
		slices.Sort(wanted)
		slices.Sort(got)
		assert.Equal(t, got, wanted, "codes with the key %+q", key)
	}
}

// The statement and the index have the same expression. If it fails, Unicode has more digits, and a
// migration must build another index.
func TestPostgres_FindsCouponsByAnIndex(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, "INSERT INTO coupons (store_id, code, amount) SELECT 1, 'C' || n, 1 FROM generate_series(1, 5000) n")
	d.exec(t, "ANALYZE coupons")
	plan := func() string {
		asked := d.asked.last.Load()
		rows := assert.Must(d.admin.Query(t.Context(), "EXPLAIN (COSTS OFF) "+asked.SQL, asked.Args...))(t)
		return strings.Join(assert.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
	}
	assert.Must(catalog.NewPostgres(d.pool).CouponsByKey(t.Context(), 1, "C7"))(t)
	byKey := plan()
	assert.That(t, strings.Contains(byKey, "coupons_by_key") && strings.Count(byKey, "octet_length") == 1, "the plan is\n%s", byKey)
	d.exec(t, "INSERT INTO coupons (store_id, code, amount, automatic, expires_at) VALUES (1, 'Z_', 1, true, NULL), (1, 'ZA', 1, true, now() + interval '1 hour'), (1, 'PAST', 1, true, now())")
	automatic := assert.Must(catalog.NewPostgres(d.pool).Automatic(t.Context(), 1))(t)
	assert.That(t, len(automatic) == 3 && automatic[0].Code == "STICKERS" && automatic[1].Code == "ZA" && automatic[2].Code == "Z_", "in the order of bytes, without those that are over: %v", automatic)
	assert.That(t, strings.Contains(plan(), "automatic_coupons"), "the plan is\n%s", plan())
}

func TestPostgres_KeepsTheMerchantsOrder(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, `INSERT INTO products (store_id, id, name, slug, type, price, original_price) VALUES (1, 100, 'Kit', 'kit', 'digital', 1, 2)`)
	d.exec(t, `INSERT INTO plans (store_id, id, product_id, duration, price) VALUES (1, 1002, 100, 'monthly', 1), (1, 1001, 100, 'decennial', 2)`)
	d.exec(t, `INSERT INTO fields (store_id, product_id, name, required, position) VALUES (1, 100, 'Z', true, 0), (1, 100, 'A', false, 1)`)
	d.exec(t, `INSERT INTO field_options (store_id, product_id, field, code, name, price, position) VALUES (1, 100, 'A', 'z', 'Zed', 0, 0), (1, 100, 'A', 'a', 'Ay', 3, 1)`)
	got, err := catalog.NewPostgres(d.pool).Products(t.Context(), 1, []int64{100})
	wanted := map[int64]*cart.Product{100: {
		ID: 100, Name: locale.Named("Kit"), Slug: "kit", Type: "digital", TaxClass: store.StandardTax, Active: true, Price: 1, OriginalPrice: 2, MinQuantity: 1, Step: 1,
		Plans:  []cart.Plan{{ID: 1001, Duration: period.Decennial, Price: 2}, {ID: 1002, Duration: period.Monthly, Price: 1}},
		Fields: []cart.Field{{Name: "Z", Required: true}, {Name: "A", Options: []cart.Option{{Code: "z", Name: locale.Named("Zed")}, {Code: "a", Name: locale.Named("Ay"), Price: 3}}}},
	}}
	diff := cmp.Diff(wanted, got)
	assert.That(t, err == nil && diff == "", "error %v, product (-want +got):\n%s", err, diff)
}

func TestCache_LoadsAHundredProductsWithOneQuery(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.exec(t, `INSERT INTO products (store_id, id, name, slug, type, price, original_price)
		SELECT 1, n, 'Book', 'book', 'digital', n, n FROM generate_series(1001, 1100) n`)
	clock := noon
	cache := catalog.NewCache(catalog.CacheConfig{
		Source: catalog.NewPostgres(d.pool), Patience: ephemeral.Patience(10 * time.Second), Now: func() time.Time { return clock },
	})
	ids := make([]int64, 100)
	for i := range ids {
		ids[i] = int64(1001 + i)
	}
	for _, ask := range []struct {
		state   string
		queries int64
	}{{"cold", 1}, {"warm", 0}, {"warm", 0}} {
		d.asked.Store(0)
		products, err := cache.Products(t.Context(), 1, ids)
		assert.Require(t, err == nil && len(products) == len(ids), "%d products, %v, want all %d", len(products), err, len(ids))
		assert.Equal(t, d.asked.Load(), ask.queries, "queries when %s", ask.state)
	}
}

func TestCache_ReloadsOnlyWhatAMessageNames(t *testing.T) {
	t.Parallel()
	for message, wanted := range map[string]struct {
		products map[int64]int64 // prices
		coupon   int64           // rate
	}{
		"product 1 1":        {map[int64]int64{1: 1, 2: 1000}, 100_000},
		"product 2 1":        {map[int64]int64{1: 4950, 2: 1000}, 100_000},
		"product *":          {map[int64]int64{1: 1, 2: 1}, 100_000},
		"coupon 1 TEN":       {map[int64]int64{1: 4950, 2: 1000}, 200_000},
		"coupon 1 T\u200bEN": {map[int64]int64{1: 4950, 2: 1000}, 200_000},
		"coupon *":           {map[int64]int64{1: 4950, 2: 1000}, 200_000},
		"store":              {map[int64]int64{1: 4950, 2: 1000}, 100_000},
		"product 1":          {map[int64]int64{1: 4950, 2: 1000}, 100_000},
		"missed":             {map[int64]int64{1: 1, 2: 1}, 200_000},
		"coupon x TEN":       {map[int64]int64{1: 4950, 2: 1000}, 100_000},
		"":                   {map[int64]int64{1: 4950, 2: 1000}, 100_000},
		"product 1 1 1":      {map[int64]int64{1: 1, 2: 1000}, 100_000},
	} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			var passed atomic.Int64 // since noon, in ns; loads end in the background
			memory := catalog.NewMemory(sample.Products())
			memory.PutCoupon(1, &price.Coupon{Code: "TEN", Kind: price.Percent, Rate: 100_000})
			memory.PutCoupon(1, &price.Coupon{Code: "A", Kind: price.Percent, Rate: 100_000, Automatic: true})
			cache := catalog.NewCache(catalog.CacheConfig{Source: memory, Patience: ephemeral.Patience(10 * time.Second), Now: func() time.Time { return noon.Add(time.Duration(passed.Load())) }})
			look := func() (prices map[int64]int64, byKey, automatic int64) {
				products, err := cache.Products(t.Context(), 1, []int64{1, 2})
				coupons, couponErr := cache.CouponsByKey(t.Context(), 1, "TEN")
				automatics, automaticErr := cache.Automatic(t.Context(), 1)
				assert.NoError(t, errors.Join(err, couponErr, automaticErr))
				prices = map[int64]int64{}
				for id, p := range products {
					prices[id] = int64(p.Price)
				}
				return prices, coupons[0].Rate, automatics[0].Rate
			}
			look()
			memory.Put(1, &cart.Product{ID: 1, Price: 1})
			memory.Put(1, &cart.Product{ID: 2, Price: 1})
			memory.PutCoupon(1, &price.Coupon{Code: "TEN", Kind: price.Percent, Rate: 200_000})
			memory.PutCoupon(1, &price.Coupon{Code: "A", Kind: price.Percent, Rate: 200_000, Automatic: true})
			passed.Add(int64(time.Millisecond))
			if message == "missed" {
				cache.InvalidateAll()
			} else {
				cache.Invalidate(message)
			}
			passed.Add(int64(time.Millisecond))
			prices, rate, automatic := look()
			if diff := cmp.Diff(wanted.products, prices); diff != "" || rate != wanted.coupon || automatic != wanted.coupon {
				t.Errorf("rates %d and %d, want %d; prices (-want +got):\n%s", rate, automatic, wanted.coupon, diff)
			}
		})
	}
}

func TestCache_FailsOnlyForUncachedValuesWhenPostgresIsDown(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	cache := newCache(catalog.NewPostgres(d.pool))
	known := assert.Must(cache.Products(t.Context(), 1, []int64{1, 4}))(t)
	d.pool.Close()
	cache.InvalidateAll()
	for range 3 {
		got, err := cache.Products(t.Context(), 1, []int64{1, 4})
		diff := cmp.Diff(known, got)
		assert.That(t, err == nil && diff == "", "cached products: error %v (-want +got):\n%s", err, diff)
		got, err = cache.Products(t.Context(), 1, []int64{1, 2})
		assert.That(t, errors.Is(err, lastknown.ErrUnknown), "an uncached product: %v, %v, want ErrUnknown", got, err)
		if got, err := cache.CouponsByKey(t.Context(), 1, "TEN"); !errors.Is(err, lastknown.ErrUnknown) {
			t.Errorf("an uncached coupon: %v, %v, want ErrUnknown", got, err)
		}
	}
	assert.That(t, !cache.Reachable(), "Reachable with a closed pool")
}

type slow struct{ version atomic.Int64 }

const slowly = 3 * time.Second

func (s *slow) Products(context.Context, int64, []int64) (map[int64]*cart.Product, error) {
	time.Sleep(slowly)
	return map[int64]*cart.Product{1: {ID: 1, Price: money.Amount(s.version.Load())}}, nil
}

func (s *slow) Automatic(context.Context, int64) ([]*price.Coupon, error) { return nil, nil }

func (s *slow) CouponsByKey(context.Context, int64, string) ([]*price.Coupon, error) {
	time.Sleep(slowly)
	return []*price.Coupon{{Code: "TEN", Rate: s.version.Load()}}, nil
}

func (s *slow) Uses(context.Context, int64, string, string, int64) (int64, error) {
	time.Sleep(slowly)
	return s.version.Load(), nil
}

func TestCache_WaitsForItsSourceUpToPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &slow{}
		cache := catalog.NewCache(catalog.CacheConfig{Source: source, Patience: slowly + time.Second})
		for version := range int64(3) { // not cached at first, then stale
			source.version.Store(version)
			cache.InvalidateAll()
			time.Sleep(time.Millisecond) // later loads are newer than the invalidation
			products, err := cache.Products(t.Context(), 1, []int64{1})
			assert.That(t, err == nil && int64(products[1].Price) == version,
				"product %+v, %v, want version %d", products[1], err, version)
			coupons, err := cache.CouponsByKey(t.Context(), 1, "TEN")
			assert.That(t, err == nil && coupons[0].Rate == version, "coupons %+v, %v, want version %d", coupons, err, version)
		}
		time.Sleep(2 * slowly) // let pending loads end
	})
}

func TestMemory_ChangesAProductWithoutLosingOtherChanges(t *testing.T) {
	t.Parallel()
	first := &cart.Product{ID: 1, Price: 100}
	m := catalog.NewMemory(map[int64][]*cart.Product{1: {first}})
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() { m.Change(1, 1, func(p *cart.Product) { p.Price++ }) })
	}
	running.Wait()
	found := assert.Must(m.Products(t.Context(), 1, []int64{1}))(t)
	assert.That(t, found[1].Price == 200 && first.Price == 100,
		"the price is %d, want 200; of the product before %d, want 100", found[1].Price, first.Price)
	for _, of := range []struct{ store, id int64 }{{1, 2}, {2, 1}} {
		assert.That(t, m.Change(of.store, of.id, func(*cart.Product) { t.Error("changed") }) == nil,
			"store %d has product %d", of.store, of.id)
	}
}
