package cart

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// How long, and how many, a cart remembers of the changes applied to it.
const (
	KeyLife  = 24 * time.Hour
	KeysKept = 256 // the newest

	StampFrom  = time.Second // the age from which a repeat is a retry, not a second click
	StampLife  = 5 * time.Minute
	StampsKept = 16 // the newest
	StampSize  = 6  // characters: 36 bits of a digest are enough to tell the stamps of one cart apart
)

// Memory is what a cart remembers of the changes applied to it, so that a repeat of one
// is recognized. A change has either an idempotency key or a stamp (see Attempt). The zero
// value remembers nothing. Methods leave it untouched.
//
// redisstore/lua/keys.lua and stamps.lua decide by the same rules; TestTwin_Changes and
// TestTwin_Merges in redisstore hold the two equal.
type Memory struct {
	Keys   map[string]KeyUse   // by idempotency key
	Stamps map[string]StampUse // by stamp: its first use
}

// KeyUse is the change that was applied under an idempotency key.
type KeyUse struct {
	At          time.Time
	Fingerprint string // of its request
	Line        LineID // the line that it changed, if its request names another; else ""
}

// StampUse is the change that was applied with a stamp.
type StampUse struct {
	At   time.Time
	Line LineID // as in KeyUse
}

// appliedUnder returns the change applied under a key. ok is false when there was none,
// or too long ago.
func (m Memory) appliedUnder(key string, now time.Time) (use KeyUse, ok bool) {
	use, ok = m.Keys[key]
	return use, ok && now.Sub(use.At) < KeyLife
}

// IsRetry reports whether a change with the same stamp is the client's own retry. Below
// StampFrom it is a second click, which counts. The zero value is no use of the stamp.
func (u StampUse) IsRetry(now time.Time) bool {
	age := now.Sub(u.At)
	return age >= StampFrom && age <= StampLife
}

// remember adds an applied change. line is the line that it changed, if its request names
// another.
func (m Memory) remember(a Attempt, line LineID, now time.Time) Memory {
	change := Memory{}
	if a.Key != "" {
		change.Keys = map[string]KeyUse{a.Key: {At: now, Fingerprint: a.Fingerprint, Line: line}}
	}
	if a.Stamp != "" {
		change.Stamps = map[string]StampUse{a.Stamp: {At: now, Line: line}}
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
		if now.Sub(use.At) <= StampLife && (!ok || now.Sub(own.At) > StampLife || use.At.Before(own.At)) {
			stamps = put(stamps, stamp, use)
		}
	}
	maps.DeleteFunc(stamps, func(_ string, use StampUse) bool { return now.Sub(use.At) > StampLife })
	return Memory{
		Keys:   newest(keys, KeysKept, func(use KeyUse) time.Time { return use.At }),
		Stamps: newest(stamps, StampsKept, func(use StampUse) time.Time { return use.At }),
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

// newest keeps the n entries with the latest times. Which of two with the same time it
// keeps is open.
func newest[V any](all map[string]V, n int, at func(V) time.Time) map[string]V {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(at(all[b]).Compare(at(all[a])), cmp.Compare(a, b))
	})
	for _, name := range names[min(n, len(names)):] {
		delete(all, name)
	}
	return all
}
