// Package service has the use cases of the cart, one method a call. It asks the catalog
// and Redis, lets the rules of package cart decide, and drives merges on login.
package service

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"io"
	"log/slog"
	"time"

	"commerce/cart"
	"commerce/cart/redisstore"
)

// Carts answers every cart call. Prices, stock and status come from the catalog at each
// call; Redis keeps the rest. It is safe for concurrent use.
type Carts struct {
	store    *redisstore.Store
	catalog  Catalog
	coupons  Coupons
	limits   cart.Limits
	strategy cart.Strategy
	budget   time.Duration
	now      func() time.Time
	rand     io.Reader
	log      *slog.Logger
}

// Catalog answers what a store sells.
type Catalog interface {
	// Products returns the store's products with the given ids; an id without an
	// entry is no product of that store. An error means that the catalog is out of
	// reach, never that a product is unknown.
	Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error)

	// Reachable reports whether a product that was never looked up could be found
	// now. It does no I/O, and may be wrong for a moment.
	Reachable() bool
}

// Coupons answers which coupons a store takes.
type Coupons interface {
	// Coupon returns the store's coupon of a code, nil when the store does not have
	// it. An error means that the coupons are out of reach.
	Coupon(ctx context.Context, store int64, code string) (*cart.Coupon, error)
}

// Config is what Carts need.
type Config struct {
	Store    *redisstore.Store
	Catalog  Catalog
	Coupons  Coupons
	Limits   cart.Limits
	Strategy cart.Strategy    // of merges; default cart.Sum
	Budget   time.Duration    // for Redis, of each request; default 200 ms
	Now      func() time.Time // default time.Now
	Rand     io.Reader        // for cart ids and tokens; default crypto/rand
	Log      *slog.Logger     // for postponed merges; default slog.Default
}

// New returns Carts.
func New(c Config) *Carts {
	s := &Carts{
		store: c.Store, catalog: c.Catalog, coupons: c.Coupons, limits: c.Limits, strategy: c.Strategy,
		budget: c.Budget, now: c.Now, rand: c.Rand, log: c.Log,
	}
	if s.strategy == "" {
		s.strategy = cart.Sum
	}
	if s.budget == 0 {
		s.budget = 200 * time.Millisecond
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.rand == nil {
		s.rand = rand.Reader
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	return s
}

// newCartID is 100 random bits, so that no two carts ever share an id, without the
// characters that an ETag puts around it.
func (s *Carts) newCartID() string {
	var bits [13]byte
	_, _ = io.ReadFull(s.rand, bits[:]) // crypto/rand does not fail
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bits[:])[:20]
}
