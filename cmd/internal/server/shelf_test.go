package server_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/catalog"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/cart/service"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

// shelf is a catalog that tests change: in memory, or the one of `serve`.
type shelf interface {
	service.Catalog
	service.Coupons
	Put(store int64, p *cart.Product)
	Delete(store, id int64)
	PutCoupon(store int64, c *cart.Coupon)
	DeleteCoupon(store int64, code string)
	PutUse(store int64, code, customer string, order int64)
}

// inPostgres is the catalog of `serve`: rows in a database, behind the cache. A change shows
// immediately, as if the database had sent its message.
type inPostgres struct {
	*catalog.Cache
	t     testing.TB
	store *store.Store
	db    *pgxpool.Pool
}

// newInPostgres writes a store to a new database.
func newInPostgres(t testing.TB, store *store.Store) (*inPostgres, auth.StoreDirectory) {
	t.Helper()
	db := ephemeral.MigratedPool(t)
	const patience = 10 * time.Second // a busy machine would otherwise show the state before a Put
	s := &inPostgres{t: t, store: store, db: db, Cache: catalog.NewCache(catalog.CacheConfig{
		Source: catalog.NewPostgres(db), Patience: patience,
	})}
	s.write(nil, nil)
	return s, auth.NewPostgresStores(auth.PostgresStoresConfig{DB: db, KnownCurrency: money.Known, Patience: patience})
}

// Put fills in the required columns that tests of the cart leave out.
func (s *inPostgres) Put(store int64, p *cart.Product) {
	s.t.Helper()
	whole := *p
	if whole.Slug == "" {
		whole.Slug, whole.Type = "product", "digital"
	}
	whole.MinQuantity = max(p.MinQuantity, 1)
	whole.Plans = slices.Clone(p.Plans)
	for i := range whole.Plans {
		whole.Plans[i].Duration = cmp.Or(whole.Plans[i].Duration, period.Monthly)
	}
	s.Delete(store, p.ID)
	s.write([]*cart.Product{&whole}, nil)
}

func (s *inPostgres) Delete(store, id int64) {
	s.t.Helper()
	s.exec("DELETE FROM products WHERE (store_id, id) = ($1, $2)", store, id)
}

func (s *inPostgres) PutCoupon(_ int64, c *cart.Coupon) {
	s.t.Helper()
	s.write(nil, []*cart.Coupon{c})
}

func (s *inPostgres) DeleteCoupon(store int64, code string) {
	s.t.Helper()
	s.exec("DELETE FROM coupons WHERE (store_id, code) = ($1, $2)", store, code)
}

func (s *inPostgres) PutUse(store int64, code, customer string, order int64) {
	s.t.Helper()
	s.exec("INSERT INTO coupon_uses (store_id, code, customer, order_id) VALUES ($1, $2, nullif($3, ''), $4)", store, code, customer, order)
	time.Sleep(time.Microsecond) // later loads are newer than the change
}

func (s *inPostgres) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.db.Exec(context.WithoutCancel(s.t.Context()), sql, args...)
	assert.Require(s.t, err == nil, "%s: %v", sql, err)
	s.InvalidateAll()
}

func (s *inPostgres) write(products []*cart.Product, coupons []*cart.Coupon) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	assert.NoError(s.t, pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		return sample.WriteStores(ctx, tx, []*store.Store{s.store},
			map[int64][]*cart.Product{s.store.ID: products}, map[int64][]*cart.Coupon{s.store.ID: coupons})
	}))
	s.InvalidateAll()
	time.Sleep(time.Microsecond) // later loads are newer than the change
}
