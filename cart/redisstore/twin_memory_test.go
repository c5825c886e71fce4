package redisstore_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/deploy/assert"
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

// appliedUnder returns the change under a key; ok is false for none, or one too long ago.
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

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// Each attempt has all that comes after what it is about, too.
func TestJudge_GoesByItsOrder(t *testing.T) {
	t.Parallel()
	one := cart.Cart{ID: "C", Version: 1, Mark: "M", Lines: []cart.Line{{ID: "1", Quantity: 1}}}
	known := Memory{Keys: map[string]cart.KeyUse{"k": {At: noon, Fingerprint: "f"}}, Stamps: map[string]cart.StampUse{"s": {At: noon}}}
	merges := map[string]cart.Reservation{"m1": {CartID: "G"}}
	now := noon.Add(time.Minute)
	for name, test := range map[string]struct {
		record  Record
		attempt Attempt
		want    Status
		code    problem.Code
	}{
		"after its deadline":      {Record{Cart: one, Memory: known, Merges: merges}, Attempt{Key: "k", Fingerprint: "f", Deadline: noon}, Late, ""},
		"at its deadline":         {Record{Cart: one, Memory: known}, Attempt{Deadline: now}, Applied, ""},
		"a merge under way":       {Record{Cart: one, Memory: known, Merges: merges}, Attempt{Key: "k", Fingerprint: "f"}, MergeFirst, ""},
		"a merge passed by":       {Record{Cart: one, Memory: known, Merges: merges}, Attempt{Ignore: []string{"m1"}}, Applied, ""},
		"a key again":             {Record{Cart: one, Memory: known}, Attempt{Key: "k", Fingerprint: "f", IfMatch: []string{"C.9.M"}}, Replayed, ""},
		"a key of something else": {Record{Cart: one, Memory: known}, Attempt{Key: "k", Fingerprint: "g", IfMatch: []string{"C.9.M"}}, Refused, problem.IdempotencyConflict},
		"a stamp again":           {Record{Cart: one, Memory: known}, Attempt{Stamp: "s", IfMatch: []string{"C.9.M"}}, Replayed, ""},
		"another version":         {Record{Cart: one, Memory: known}, Attempt{IfMatch: []string{"C.9.M", "C.11.M"}}, Refused, problem.VersionMismatch},
		"one of two versions":     {Record{Cart: one, Memory: known}, Attempt{IfMatch: []string{"C.9.M", "C.1.M"}}, Applied, ""},
		"any version":             {Record{Cart: one, Memory: known}, Attempt{IfMatch: []string{"*"}}, Applied, ""},
		"no cart yet":             {Record{}, Attempt{IfMatch: []string{"0.0.0"}}, Applied, ""},
	} {
		got, _, refusal := test.record.Check(test.attempt, now)
		assert.That(t, got == test.want && (refusal == nil) == (test.code == "") && (refusal == nil || refusal.Code == test.code),
			"%s: %s, %v", name, got, refusal)
	}
}
