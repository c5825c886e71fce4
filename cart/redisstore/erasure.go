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
	claim   string   // for KindClaimed: whose
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
	KindUndone  HoldingKind = "what an undo took out" // a guest's cart; sorts last, because the guest's other keys are found by it
)

// Holdings lists everything stored for a reference. That includes its shares, what names it among the keys of guests,
// and all that the guests have whose carts an undo has made from its cart. It scans all keys of Redis: do not use it in
// requests.
func (s *Store) Holdings(ctx context.Context, ref Ref) ([]Holding, error) {
	// First: a claimed cart that is merged meanwhile is among the others then.
	named, err := s.mentions(ctx, ref.guestsPattern(), func(tag string) bool { return tag == ref.tag() })
	if err != nil {
		return nil, err
	}
	keys := slices.Collect(maps.Keys(named))
	owners := []Ref{ref}
	for key := range named {
		if kindOf(key) == KindCart {
			owners = append(owners, refOf(key))
		}
	}
	for _, owner := range owners {
		own, err := s.keysLike(ctx, escapeGlob(owner.key)+"*")
		if err != nil {
			return nil, err
		}
		keys = append(keys, own...)
	}
	lists, err := s.lists(ctx, keys)
	if err != nil {
		return nil, err
	}
	for _, digests := range lists {
		for _, digest := range digests {
			keys = append(keys, ref.shareKeyOf(digest))
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(ref.kindOf(a), ref.kindOf(b)), cmp.Compare(a, b))
	})
	var all []Holding
	for _, key := range slices.Compact(keys) { // SCAN may list a key twice
		h, found, err := s.holding(ctx, key, ref.kindOf(key))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", h.Kind, err)
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

// kindOf returns the kind of a key that Holdings lists for the reference.
func (r Ref) kindOf(key string) HoldingKind {
	if kind := kindOf(key); kind != KindCart || refOf(key) == r {
		return kind
	}
	return KindUndone
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

// GuestRefs finds the carts of a token in all stores, also those that only keys of other guests name. Like Holdings, it
// scans all keys.
func (s *Store) GuestRefs(ctx context.Context, token auth.CartToken) (refs []Ref, err error) {
	named, err := s.mentions(ctx, beforeTag+"*:g:*"+afterTag+":*", func(tag string) bool { return strings.HasSuffix(tag, ":g:"+token.Digest()) })
	if err != nil {
		return nil, err
	}
	keys, err := s.keysLike(ctx, guestPattern(token))
	for _, key := range keys {
		named[key] = refOf(key)
	}
	return slices.Compact(slices.SortedFunc(maps.Values(named), func(a, b Ref) int { return cmp.Compare(a.key, b.key) })), err
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
		switch h.Kind {
		case KindShares: // not if others are listed since: only the list leads to their shares
			err = s.eraseIf(ctx, h.Key, func(members map[string]string) bool {
				return !slices.ContainsFunc(slices.Collect(maps.Keys(parseShares(flat(members)))), func(digest string) bool { return !slices.Contains(h.digests, digest) })
			})
		case KindClaimed: // not if another customer has claimed one in its place
			err = s.eraseIf(ctx, h.Key, func(members map[string]string) bool { return members["o"] == h.claim })
		default:
			err = s.Client.Unlink(ctx, h.Key).Err()
		}
		if err != nil {
			return nil, fmt.Errorf("remove %s: %w", h.Kind, err)
		}
	}
	return held, nil
}

// eraseIf deletes a hash if it is still what was listed. Otherwise a repeat of Erase finds it.
func (s *Store) eraseIf(ctx context.Context, key string, isListed func(members map[string]string) bool) error {
	err := s.Client.Watch(ctx, func(tx *redis.Tx) error {
		members, err := tx.HGetAll(ctx, key).Result()
		if err != nil || !isListed(members) {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Unlink(ctx, key).Err() })
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	return err
}

func flat(members map[string]string) (all []string) {
	for member, value := range members {
		all = append(all, member, value)
	}
	return all
}

// mentions returns the keys of guests that name a cart whose tag is wanted, and that cart: the new owner of a claimed cart,
// the fresh token of an agent's shopper, or the customer of an undone merge.
func (s *Store) mentions(ctx context.Context, pattern string, wanted func(tag string) bool) (map[string]Ref, error) {
	naming := map[HoldingKind][]string{KindClaimed: {"o", "u"}, KindMoved: {"t"}, KindCart: {"u"}} // the members
	named := map[string]Ref{}
	err := s.scan(ctx, pattern, func(keys []string) error {
		var asked []string
		var names []redis.Cmder
		for _, key := range keys {
			for _, member := range naming[kindOf(key)] {
				names, asked = append(names, redis.NewStringCmd(ctx, "hget", key, member)), append(asked, key)
			}
		}
		if len(names) == 0 {
			return nil
		}
		exec(ctx, s.Client, false, names)
		if err := firstFailure(names); err != nil { // of each node: a missing member must not hide it
			return fmt.Errorf("read names: %w", err)
		}
		for i, name := range names {
			tag, _, _ := strings.Cut(name.(*redis.StringCmd).Val(), " ")
			if wanted(tag) {
				named[asked[i]] = RefOfTag(tag)
			}
		}
		return nil
	})
	return named, err
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
		all[key] = slices.Collect(maps.Keys(parseShares(flat(list))))
	}
	return all, nil
}

// holding reads what is stored under a key. found is false if there is nothing.
func (s *Store) holding(ctx context.Context, key string, kind HoldingKind) (h Holding, found bool, err error) {
	h = Holding{Kind: kind, Key: key}
	h.Expires, err = s.Client.PTTL(ctx, key).Result()
	if err != nil || h.Expires == -2 { // no such key
		return h, false, err
	}
	switch h.Kind {
	case KindMoved:
	case KindOffers, KindResults, KindShares, KindCame, KindKeys:
		var members []string
		members, err = s.Client.HKeys(ctx, key).Result()
		h.Entries = int64(len(slices.DeleteFunc(members, func(m string) bool { return len(m) == 1 && !ofLine(m) }))) // not their order, nor a fence
	default:
		hash := s.Client.HGetAll(ctx, key)
		var flat []string
		if flat, err = membersOf(hash, nil); err == nil {
			var stored Stored
			stored, err = parseCart(flat)
			h.Cart, h.claim = stored.expiring(h.Expires, s.Now()).Cart, hash.Val()["o"]
		}
	}
	return h, true, err
}

func (s *Store) keysLike(ctx context.Context, pattern string) (keys []string, err error) {
	err = s.scan(ctx, pattern, func(some []string) error {
		keys = append(keys, some...)
		return nil
	})
	return keys, err
}

// scan visits the keys that match a pattern, on every master of a cluster, some at a time. It fails if it could miss
// some: a cursor is invalid at another process, and the keys of a slot that moves go to a master that may have been walked.
func (s *Store) scan(ctx context.Context, pattern string, visit func(keys []string) error) error {
	before, err := s.Masters(ctx)
	if err != nil {
		return err
	}
	var visiting sync.Mutex
	walk := func(ctx context.Context, node redis.Cmdable) error {
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			keys, next, err := node.Scan(ctx, cursor, pattern, 1000).Result()
			if err != nil {
				return err
			}
			visiting.Lock()
			err = visit(keys)
			visiting.Unlock()
			if err != nil {
				return err
			}
			cursor = next
		}
		return nil
	}
	if cluster, ok := s.Client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return walk(ctx, node) })
	} else {
		err = walk(ctx, s.Client)
	}
	if err != nil {
		return fmt.Errorf("look for keys: %w", err)
	}
	after, err := s.Masters(ctx)
	if err == nil && after.ID != before.ID {
		err = errMasters
	}
	return err
}

var errMasters = errors.New("a Redis master was restarted or replaced, or slots are being moved, so keys could be missed: try again afterwards")

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
