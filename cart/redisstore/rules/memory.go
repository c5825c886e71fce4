package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"commerce/cart"
)

// How long, and how many, idempotency keys a cart remembers. Package cart has those of stamps.
const (
	KeyLife  = 24 * time.Hour
	KeysKept = 256 // the newest
)

// Memory is what a cart remembers of the changes applied to it, so that a repeat of one is recognized.
// A change has either an idempotency key or a stamp. See keys.lua and stamps.lua.
type Memory struct {
	Keys   map[string]cart.KeyUse   // by idempotency key
	Stamps map[string]cart.StampUse // by stamp: its first use
}

// appliedUnder returns the change applied under a key. ok is false when there was none,
// or too long ago.
func (m Memory) appliedUnder(key string, now time.Time) (use cart.KeyUse, ok bool) {
	use, ok = m.Keys[key]
	return use, ok && now.Sub(use.At) < KeyLife
}

// remember adds an applied change. line is the line that it changed, if its request names
// another. The outcomes of a list, which take its place, are only remembered with a key.
func (m Memory) remember(a Attempt, line cart.LineID, now time.Time) Memory {
	change := Memory{}
	if a.Key != "" {
		change.Keys = map[string]cart.KeyUse{a.Key: {At: now, Fingerprint: a.Fingerprint, Line: line}}
	}
	if a.Stamp != "" {
		if strings.HasPrefix(string(line), ",") {
			line = ""
		}
		change.Stamps = map[string]cart.StampUse{a.Stamp: {At: now, Line: line}}
	}
	return m.Join(change, 0, now)
}

// Join adds what another cart remembers, whose times are by a clock that is behind by the
// given duration. It keeps the newest of both. Of a key, the later use counts; of a stamp,
// the first, so that a retry of either of two clicks is recognized.
func (m Memory) Join(other Memory, behind time.Duration, now time.Time) Memory {
	keys, stamps := maps.Clone(m.Keys), maps.Clone(m.Stamps)
	for key, use := range other.Keys {
		use.At = earlier(use.At.Add(behind), now)
		if own, ok := keys[key]; now.Sub(use.At) < KeyLife && (!ok || use.At.After(own.At)) {
			keys = put(keys, key, use)
		}
	}
	for stamp, use := range other.Stamps {
		use.At = earlier(use.At.Add(behind), now)
		own, ok := stamps[stamp]
		if now.Sub(use.At) <= cart.StampLife && (!ok || now.Sub(own.At) > cart.StampLife || use.At.Before(own.At)) {
			stamps = put(stamps, stamp, use)
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

// put adds to a map that may be nil.
func put[V any](all map[string]V, key string, value V) map[string]V {
	if all == nil {
		all = map[string]V{}
	}
	all[key] = value
	return all
}

// newest keeps the n entries with the latest times.
func newest[V any](all map[string]V, n int, at func(V) time.Time) map[string]V {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(at(all[b]).Compare(at(all[a])), cmp.Compare(a, b))
	})
	for _, name := range names[min(n, len(names)):] {
		delete(all, name)
	}
	return all
}
