package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart"
)

// Holding is one Redis key with data about a guest or a customer.
type Holding struct {
	Kind    HoldingKind
	Key     string
	Expires time.Duration // time to live; negative for none
	Cart    cart.Cart     // for HeldCart and HeldClaimed
	Entries int64         // for HeldKeys and HeldOffers: how many
}

// HoldingKind is the kind of data in a Holding.
type HoldingKind string

// The kinds.
const (
	HeldCart    HoldingKind = "cart"
	HeldClaimed HoldingKind = "claimed cart" // a guest's cart, set aside for a customer
	HeldKeys    HoldingKind = "idempotency keys"
	HeldOffers  HoldingKind = "merged quantities"
)

// Holdings lists everything stored for a reference. For a customer, that includes the
// guests' carts that are claimed for that customer and not merged yet. It scans all keys
// of Redis: use it for support, not in requests.
func (s *Store) Holdings(ctx context.Context, ref Ref) ([]Holding, error) {
	var held []Holding
	add := func(kind HoldingKind, keys ...string) error {
		for _, key := range keys {
			h, found, err := s.holding(ctx, kind, key)
			if err != nil {
				return err
			}
			if found {
				held = append(held, h)
			}
		}
		return nil
	}
	offers, err := s.scan(ctx, escapeGlob(ref.offeredKey(""))+"*")
	if err != nil {
		return nil, err
	}
	claims, err := s.claimsOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return add(HeldCart, ref.cartKey()) },
		func() error { return add(HeldClaimed, claims...) },
		func() error { return add(HeldKeys, ref.keysKey()) },
		func() error { return add(HeldOffers, offers...) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// GuestRefs finds the carts of a token in all stores. Like Holdings, it scans all keys.
func (s *Store) GuestRefs(ctx context.Context, token auth.CartToken) ([]Ref, error) {
	keys, err := s.scan(ctx, guestPattern(token))
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for _, key := range keys {
		if ref := refOf(key); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// Erase deletes everything that Holdings lists, and returns it. It is not atomic: after an
// error, or while requests go on, repeat it until it returns nothing.
func (s *Store) Erase(ctx context.Context, ref Ref) ([]Holding, error) {
	held, err := s.Holdings(ctx, ref)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		if err := s.client.Unlink(ctx, h.Key).Err(); err != nil {
			return nil, fmt.Errorf("remove %s: %w", h.Kind, err)
		}
	}
	return held, nil
}

// claimsOf returns the keys of a reference's claimed carts: a guest's own one, or those
// that name a customer as their new owner.
func (s *Store) claimsOf(ctx context.Context, ref Ref) ([]string, error) {
	if ref.guest {
		return []string{ref.claimedKey()}, nil
	}
	all, err := s.scan(ctx, ref.claimsPattern())
	if err != nil {
		return nil, err
	}
	var own []string
	for _, key := range all {
		owner, err := s.client.HGet(ctx, key, "o").Result()
		if err != nil && err != redis.Nil {
			return nil, fmt.Errorf("read claimed cart: %w", err)
		}
		if tag, _, _ := strings.Cut(owner, " "); tag == ref.tag() {
			own = append(own, key)
		}
	}
	return own, nil
}

func (s *Store) holding(ctx context.Context, kind HoldingKind, key string) (h Holding, found bool, err error) {
	left, err := s.client.PTTL(ctx, key).Result()
	if err != nil {
		return h, false, fmt.Errorf("read %s: %w", kind, err)
	}
	if left == -2 { // no such key
		return h, false, nil
	}
	h = Holding{Kind: kind, Key: key, Expires: left}
	switch kind {
	case HeldOffers:
		h.Entries, err = s.client.HLen(ctx, key).Result()
	case HeldKeys:
		var uses map[string]string
		uses, err = s.client.HGetAll(ctx, key).Result()
		for member := range uses {
			if !strings.HasSuffix(member, lineOfKey) {
				h.Entries++
			}
		}
	default:
		hash := redis.NewMapStringStringCmd(ctx, "hgetall", key)
		_ = s.client.Process(ctx, hash)
		var flat []string
		if flat, err = membersOf(hash, nil); err == nil {
			var stored Stored
			stored, err = parseCart(flat)
			h.Cart = stored.expiring(left, s.now()).Cart
		}
	}
	if err != nil {
		return h, false, fmt.Errorf("read %s: %w", kind, err)
	}
	return h, true, nil
}

// scan lists the keys that match a pattern, on every master of a cluster.
func (s *Store) scan(ctx context.Context, pattern string) ([]string, error) {
	var mu sync.Mutex
	var keys []string
	walk := func(ctx context.Context, node redis.Cmdable) error {
		it := node.Scan(ctx, 0, pattern, 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return walk(ctx, node) })
	} else {
		err = walk(ctx, s.client)
	}
	if err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	return keys, nil
}

// escapeGlob escapes the characters of a key that are special in a pattern.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
