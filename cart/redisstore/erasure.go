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
	"commerce/cart/redisstore/layout"
)

// Holding is one Redis key with data about a guest or a customer.
type Holding struct {
	Kind    HoldingKind
	Key     string
	Expires time.Duration // time to live; negative for none
	Cart    cart.Cart     // of a hash in the layout of a cart
	Entries int64         // how many members another hash has

	leads *Beside  // if its members lead to other keys
	led   []string // to which keys they did
	claim string   // for KindClaimed: whose
}

type HoldingKind string

const (
	KindCart    HoldingKind = "cart"
	KindClaimed HoldingKind = "claimed cart" // a guest's cart, set aside for its new owner
	KindKeys    HoldingKind = "idempotency keys"
	KindOffers  HoldingKind = "merged quantities"
	KindMoved   HoldingKind = "mark of a hand-over" // of an agent's cart
	KindCame    HoldingKind = "what a merge has brought"
	KindUndone  HoldingKind = "what an undo took out" // a guest's cart; sorts last, because the guest's other keys are found by it
)

// Holdings lists everything stored for a reference. That includes what its hashes lead to (see Beside), what names it among the keys
// of guests, and all that the guests have whose carts an undo has made from its cart. It scans all keys of Redis: do not use it in
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
		if partOf(key) == "" {
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
	all := map[string]Holding{} // by key: SCAN may list one twice
	for _, key := range keys {
		h := Holding{Key: key, Kind: s.kindFor(ref, key)}
		if h.leads = s.besideOf(key); h.leads != nil && h.leads.Leads != nil {
			members, err := s.Client.HKeys(ctx, key).Result()
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", h.Kind, err)
			}
			h.led = h.leads.keys(ref, members)
			for _, led := range h.led {
				all[led] = Holding{Key: led, Kind: h.leads.Led}
			}
		}
		all[key] = h
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b Holding) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key)) })
	var found []Holding
	for _, h := range sorted {
		exists, err := s.hold(ctx, &h)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", h.Kind, err)
		}
		if exists {
			found = append(found, h)
		}
	}
	return found, nil
}

// parts are the kinds by what follows the key of a cart.
var parts = map[string]HoldingKind{
	"": KindCart, "claimed": KindClaimed, "keys": KindKeys, "moved": KindMoved, "came": KindCame, "offered": KindOffers,
}

func partOf(key string) string {
	_, suffix, _ := strings.Cut(key, afterTag+":")
	part, _, _ := strings.Cut(suffix, ":")
	return part
}

// besideOf describes the hash of a key, if a package beside the core keeps it; otherwise nil.
func (s *Store) besideOf(key string) *Beside {
	for i := range s.Beside {
		if s.Beside[i].Part == partOf(key) {
			return &s.Beside[i]
		}
	}
	return nil
}

// kindFor returns the kind of a key that Holdings lists for the reference.
func (s *Store) kindFor(ref Ref, key string) HoldingKind {
	switch b := s.besideOf(key); {
	case b != nil:
		return b.Kind
	case partOf(key) == "" && refOf(key) != ref:
		return KindUndone
	}
	return cmp.Or(parts[partOf(key)], HoldingKind(partOf(key)))
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
		switch {
		case h.led != nil: // not if it leads to others since: nothing else does
			err = s.eraseIf(ctx, h.Key, func(members map[string]string) bool {
				return !slices.ContainsFunc(h.leads.keys(ref, slices.Collect(maps.Keys(members))), func(key string) bool { return !slices.Contains(h.led, key) })
			})
		case h.Kind == KindClaimed: // not if another customer has claimed one in its place
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

// mentions returns the keys of guests that name a cart whose tag is wanted, and that cart: the new owner of a claimed cart,
// the fresh token of an agent's shopper, or the customer of an undone merge.
func (s *Store) mentions(ctx context.Context, pattern string, wanted func(tag string) bool) (map[string]Ref, error) {
	naming := map[string][]string{"claimed": {"o", "u"}, "moved": {"t"}, "": {"u"}} // the members, by the part of the key
	named := map[string]Ref{}
	err := s.scan(ctx, pattern, func(keys []string) error {
		var asked []string
		var names []redis.Cmder
		for _, key := range keys {
			for _, member := range naming[partOf(key)] {
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

// hold reads what is stored under the key of a holding. exists is false if there is nothing.
func (s *Store) hold(ctx context.Context, h *Holding) (exists bool, err error) {
	h.Expires, err = s.Client.PTTL(ctx, h.Key).Result()
	if err != nil || h.Expires == -2 { // no such key
		return false, err
	}
	switch {
	case h.Kind == KindMoved:
	case partOf(h.Key) == "", h.Kind == KindClaimed:
		hash := s.Client.HGetAll(ctx, h.Key)
		var flat []string
		if flat, err = membersOf(hash, nil); err == nil {
			var stored Stored
			stored.Hash, err = layout.ParseAny(flat)
			h.Cart, h.claim = stored.expiring(h.Expires, s.Now()).Cart, hash.Val()["o"]
		}
	default:
		var members []string
		members, err = s.Client.HKeys(ctx, h.Key).Result()
		h.Entries = int64(len(slices.DeleteFunc(members, func(m string) bool { return len(m) == 1 && !layout.OfLine(m) }))) // not their order, nor a fence
	}
	return true, err
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
