package redisstore_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"commerce/cart"
)

// How long, and how many, idempotency keys a cart remembers.
const (
	KeyLife  = 24 * time.Hour
	KeysKept = 256 // the newest
)

// Memory is what a cart remembers of the changes applied to it, so that a repeat of one is recognized.
// A change has either an idempotency key or a stamp. See cart.KeyUse and cart.Stamps.
type Memory struct {
	Keys   map[string]cart.KeyUse   // by idempotency key
	Stamps map[string]cart.StampUse // by stamp: its first use
}

// Join adds what another cart remembers, whose times are by a clock that is behind by the
// given duration. It keeps the newest of both. Of a key, the later use counts; of a stamp,
// the first, so that a retry of either of two clicks is recognized.
func (m Memory) Join(other Memory, behind time.Duration, now time.Time) Memory {
	keys, stamps := maps.Clone(m.Keys), maps.Clone(m.Stamps)
	for key, use := range other.Keys {
		use.At = earlier(use.At.Add(behind), now)
		if own, ok := keys[key]; now.Sub(use.At) < KeyLife && (!ok || use.At.After(own.At)) {
			keys = putIn(keys, key, use)
		}
	}
	for stamp, use := range other.Stamps {
		use.At = earlier(use.At.Add(behind), now)
		own, ok := stamps[stamp]
		if now.Sub(use.At) <= cart.StampLife && (!ok || now.Sub(own.At) > cart.StampLife || use.At.Before(own.At)) {
			stamps = putIn(stamps, stamp, use)
		}
	}
	maps.DeleteFunc(stamps, func(_ string, use cart.StampUse) bool { return now.Sub(use.At) > cart.StampLife })
	return Memory{
		Keys:   newest(keys, KeysKept, func(use cart.KeyUse) time.Time { return use.At }),
		Stamps: newest(stamps, cart.StampsKept, func(use cart.StampUse) time.Time { return use.At }),
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func putIn[V any](all map[string]V, key string, value V) map[string]V {
	if all == nil {
		all = map[string]V{}
	}
	all[key] = value
	return all
}

func newest[V any](all map[string]V, n int, at func(V) time.Time) map[string]V {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(at(all[b]).Compare(at(all[a])), cmp.Compare(a, b))
	})
	for _, name := range names[min(n, len(names)):] {
		delete(all, name)
	}
	return all
}
