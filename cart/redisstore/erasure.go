package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	Cart    cart.Cart     // for KindCart, KindClaimed and KindShare
	Entries int64         // for KindKeys, KindOffers, KindResults, KindShares and KindCame: how many

	digests []string // for KindShares: of the codes of shares
}

type HoldingKind string

const (
	KindCart    HoldingKind = "cart"
	KindClaimed HoldingKind = "claimed cart" // a guest's cart, set aside for its new owner
	KindKeys    HoldingKind = "idempotency keys"
	KindOffers  HoldingKind = "merged quantities"
	KindResults HoldingKind = "results of an agent's calls"
	KindMoved   HoldingKind = "mark of a hand-over" // of an agent's cart
	KindCame    HoldingKind = "what a merge has brought"
	KindShare   HoldingKind = "share" // sorts before the list that it is found by, so that Erase can be repeated
	KindShares  HoldingKind = "shares of a cart"
)

// Holdings lists everything stored for a reference. That includes the guests' carts that are claimed for
// it, and its shares. It scans all keys of Redis: do not use it in requests.
func (s *Store) Holdings(ctx context.Context, ref Ref) ([]Holding, error) {
	claims, err := s.claimsFor(ctx, ref) // first: a claimed cart that is merged meanwhile is among the others then
	if err != nil {
		return nil, err
	}
	keys, err := s.scan(ctx, escapeGlob(ref.key)+"*")
	if err != nil {
		return nil, err
	}
	lists, err := s.lists(ctx, keys)
	if err != nil {
		return nil, err
	}
	keys = append(keys, claims...)
	for _, digests := range lists {
		for _, digest := range digests {
			keys = append(keys, ref.shareKeyOf(digest))
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(kindOf(a), kindOf(b)), cmp.Compare(a, b))
	})
	var all []Holding
	for _, key := range slices.Compact(keys) { // SCAN may list a key twice
		h, found, err := s.holding(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", kindOf(key), err)
		}
		if found {
			h.digests = lists[key]
			all = append(all, h)
		}
	}
	return all, nil
}

// kinds are the kinds by what follows the key of a cart.
var kinds = map[string]HoldingKind{
	"claimed": KindClaimed, "keys": KindKeys, "results": KindResults, "moved": KindMoved, "came": KindCame, "shares": KindShares,
}

func kindOf(key string) HoldingKind {
	_, suffix, _ := strings.Cut(key, afterTag)
	switch part := strings.Split(suffix, ":"); {
	case strings.Contains(key, shareTag):
		return KindShare
	case len(part) > 1:
		return cmp.Or(kinds[part[1]], KindOffers)
	}
	return KindCart
}

// GuestRefs finds the carts of a token in all stores. Like Holdings, it scans all keys.
func (s *Store) GuestRefs(ctx context.Context, token auth.CartToken) (refs []Ref, err error) {
	keys, err := s.scan(ctx, guestPattern(token))
	for _, key := range keys {
		if ref := refOf(key); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs, err
}

// Erase deletes everything that Holdings lists, and returns it. It is not atomic: after an
// error, or while requests go on, repeat it until it returns nothing.
func (s *Store) Erase(ctx context.Context, ref Ref) ([]Holding, error) {
	held, err := s.Holdings(ctx, ref)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		var err error
		if h.Kind == KindShares { // not those listed since: only the list leads to their shares
			err = s.Client.HDel(ctx, h.Key, h.digests...).Err()
		} else {
			err = s.Client.Unlink(ctx, h.Key).Err()
		}
		if err != nil {
			return nil, fmt.Errorf("remove %s: %w", h.Kind, err)
		}
	}
	return held, nil
}

func (s *Store) claimsFor(ctx context.Context, owner Ref) ([]string, error) {
	all, err := s.scan(ctx, owner.claimsPattern())
	if err != nil {
		return nil, err
	}
	var own []string
	for _, key := range all {
		claim, err := s.Client.HGet(ctx, key, "o").Result()
		if err != nil && err != redis.Nil {
			return nil, fmt.Errorf("read claimed cart: %w", err)
		}
		if tag, _, _ := strings.Cut(claim, " "); tag == owner.tag() {
			own = append(own, key)
		}
	}
	return own, nil
}

// lists returns the digests of the codes of shares that the lists among a reference's keys have, by the list's key.
func (s *Store) lists(ctx context.Context, keys []string) (map[string][]string, error) {
	all := map[string][]string{}
	for _, key := range keys {
		if kindOf(key) != KindShares {
			continue
		}
		list, err := s.Client.HGetAll(ctx, key).Result()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", KindShares, err)
		}
		all[key] = slices.Collect(maps.Keys(list))
	}
	return all, nil
}

// holding reads what is stored under a key. found is false if there is nothing.
func (s *Store) holding(ctx context.Context, key string) (h Holding, found bool, err error) {
	h = Holding{Kind: kindOf(key), Key: key}
	h.Expires, err = s.Client.PTTL(ctx, key).Result()
	if err != nil || h.Expires == -2 { // no such key
		return h, false, err
	}
	switch h.Kind {
	case KindMoved:
	case KindOffers, KindResults, KindShares, KindCame, KindKeys:
		if h.Entries, err = s.Client.HLen(ctx, key).Result(); h.Kind == KindResults {
			h.Entries-- // their order
		}
	default:
		hash := s.Client.HGetAll(ctx, key)
		var flat []string
		if flat, err = membersOf(hash, nil); err == nil {
			var stored Stored
			stored, err = parseCart(flat)
			h.Cart = stored.expiring(h.Expires, s.Now()).Cart
		}
	}
	return h, true, err
}

// scan lists the keys that match a pattern, on every master of a cluster. It fails if it could miss some: a cursor is
// invalid at another process, and the keys of a slot that moves go to a master that may have been walked.
func (s *Store) scan(ctx context.Context, pattern string) ([]string, error) {
	before, err := s.Masters(ctx)
	if err != nil {
		return nil, err
	}
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
	if cluster, ok := s.Client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return walk(ctx, node) })
	} else {
		err = walk(ctx, s.Client)
	}
	if err != nil {
		return nil, fmt.Errorf("look for keys: %w", err)
	}
	after, err := s.Masters(ctx)
	if err == nil && after.ID != before.ID {
		err = errMasters
	}
	return keys, err
}

var errMasters = errors.New("a Redis master was restarted or replaced, or slots are being moved, so keys could be missed: try again afterwards")

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
