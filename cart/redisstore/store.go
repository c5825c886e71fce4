// Package redisstore is how carts lie in Redis: one hash each, changed by one script
// in one round trip. It knows what must be atomic; what a cart may hold is passed in.
//
// Any Redis from 7.0 on serves: single, Cluster or Sentinel.
package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
)

// Store keeps carts. It is safe for concurrent use.
type Store struct {
	client      redis.UniversalClient
	scripts     scripts
	ttl         TTLs
	durable     bool
	minReplicas int
	sentinels   func(context.Context, time.Duration) (int, error)
	masters     *masters
	now         func() time.Time
}

// Config is what a Store needs.
type Config struct {
	// Client must follow redirections, and may retry: commands that must not run
	// twice opt out. Its settings are the caller's concern.
	Client redis.UniversalClient
	TTL    TTLs

	// Durable makes every change wait, for a bounded time, until all replicas have
	// it, and report whether they do.
	Durable bool

	// MinReplicas is the minimum number of replicas of each master; 0 when it is not
	// known. A merge drops the guest's cart only after that many have confirmed it.
	MinReplicas int

	// Sentinels returns how many replicas the sentinels list that have answered them
	// within the given time; nil without sentinels.
	Sentinels func(context.Context, time.Duration) (int, error)

	Now func() time.Time // default time.Now
}

// TTLs are how long carts live after they were last read or changed.
type TTLs struct {
	Guest    time.Duration
	Customer time.Duration
}

// New returns a Store.
func New(c Config) *Store {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Store{
		client: c.Client, scripts: newScripts(), ttl: c.TTL, durable: c.Durable,
		minReplicas: c.MinReplicas, sentinels: c.Sentinels, masters: newMasters(c.Now), now: c.Now,
	}
}

func (s *Store) ttlOf(ref Ref) time.Duration {
	if ref.guest {
		return s.ttl.Guest
	}
	return s.ttl.Customer
}

// Held is what lies under a reference. The zero value is nothing.
type Held struct {
	cart.Cart
	Notes Notes // of merges under way into this cart
}

// Load reads a cart and renews its TTL. It creates nothing: where no cart lies, it
// returns the zero Held.
func (s *Store) Load(ctx context.Context, ref Ref) (Held, error) {
	return s.readCart(s.scripts.read.run(ctx, s.client, repeatable,
		[]string{ref.cartKey()}, s.ttlOf(ref).Milliseconds()))
}

// readCart takes what read.lua replied.
func (s *Store) readCart(cmd *redis.Cmd) (Held, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Held{}, cart.Unavailable("read cart", err)
	}
	held, err := parseCart(reply[0].([]any), reply[1].(int64), s.now())
	if err != nil {
		return Held{}, cart.Unavailable("read cart", err)
	}
	return held, nil
}
