// Package service has the use cases of the cart, one method per API call. It connects the
// catalog and Redis with the rules of package cart, and runs merges on login.
package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"io"
	"log/slog"
	"time"

	"commerce/auth/limit"
	"commerce/auth/sealed"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/transfer"
)

// Carts implements every cart call. Prices, stock and status come from the catalog at each
// call; everything else is in Redis. It is safe for concurrent use.
type Carts struct {
	Config
}

type Catalog interface {
	// Products returns the store's products with the given IDs, by ID. An unknown ID has
	// no entry and is not an error: an error means that the catalog is unreachable.
	Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error)

	// Reachable reports without I/O whether a product can be loaded now; it may be wrong briefly.
	Reachable() bool
}

type Coupons interface {
	// Automatic returns the automatic coupons of a store, sorted by code.
	Automatic(ctx context.Context, store int64) ([]*price.Coupon, error)

	// CouponsByKey returns the store's coupons whose codes have a cart.CouponKey. An error means that all are unreachable.
	CouponsByKey(ctx context.Context, store int64, key string) ([]*price.Coupon, error)

	// Uses returns how many orders of a customer, "" for all customers and guests, have
	// used a coupon. It counts no further than limit. An error means that no count is
	// known; the result is then 0.
	Uses(ctx context.Context, store int64, code, customer string, limit int64) (int64, error)
}

// Config configures Carts. Store, Catalog, Coupons and Limits are required.
type Config struct {
	Redis    *redisstore.Store
	Catalog  Catalog
	Coupons  Coupons
	Keys     *sealed.Keys // of codes of hand-overs, and of what packages beside the core make; nil: none
	Guesses  Guesses      // zero: any number of codes may be refused
	Creation *limit.Quota // how many guests' carts a client may create; nil: any number
	Text     *limit.Quota // how many bytes of text a client may store in guests' carts; nil: any number
	Limits   cart.Limits

	Strategy transfer.Strategy // of merges; default transfer.Sum
	Budget   time.Duration     // how long each request may wait for Redis; default 200 ms
	Now      func() time.Time  // default time.Now
	Rand     io.Reader         // for cart IDs and tokens; default crypto/rand
	Log      *slog.Logger      // for postponed merges; default slog.Default
	Events   Events
}

// Events are called when something happens to a cart, for metrics. A nil function is not
// called. They must not block.
type Events struct {
	// Created is called when a change, and not a merge, has created a customer's or a guest's cart.
	Created func(customer bool)

	// Merged is called after each attempt at a merge.
	Merged func(outcome MergeOutcome, took time.Duration)

	// Replicated is called after each change that waited for replicas, with whether all of
	// them have it.
	Replicated func(confirmed bool)

	// Validated is called with the result of each validation.
	Validated func(*price.Validation)
}

func New(c Config) *Carts {
	c.Strategy = cmp.Or(c.Strategy, transfer.Sum)
	c.Budget = cmp.Or(c.Budget, defaultBudget)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Events = c.Events.withDefaults()
	return &Carts{c}
}

// NewCartID returns 100 random bits, so that no two carts share an ID. It has none of the
// separators of an ETag.
func (s *Carts) NewCartID() string { return s.NewName(20) }

// NewName returns random characters of base32, at most 26.
func (s *Carts) NewName(size int) string {
	var bits [17]byte
	_, _ = io.ReadFull(s.Rand, bits[:]) // crypto/rand does not fail
	return base32.StdEncoding.EncodeToString(bits[:])[:size]
}

func (e Events) withDefaults() Events {
	if e.Created == nil {
		e.Created = func(bool) {}
	}
	if e.Merged == nil {
		e.Merged = func(MergeOutcome, time.Duration) {}
	}
	if e.Replicated == nil {
		e.Replicated = func(bool) {}
	}
	if e.Validated == nil {
		e.Validated = func(*price.Validation) {}
	}
	return e
}
