package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// openPair returns two instances of the service.
func openPair(t *testing.T) (mine, other *Store) {
	t.Helper()
	server := miniredis.RunT(t)
	open := func() *Store {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { client.Close() })
		return New(Config{Client: client, TTL: TTLs{Guest: time.Hour, Customer: time.Hour}})
	}
	return open(), open()
}

func addsOne(line cart.LineID) cart.Rule {
	return cart.Add(cart.NewLine{ID: line, Quantity: 1, Price: 100, Bounds: cart.Bounds{Max: 100, Stock: -1}})
}

// meanwhile is a rule that is first decided while something else happens.
func meanwhile(happens func(), rule cart.Rule) cart.Rule {
	var once sync.Once
	return func(c *cart.Cell, limits cart.Limits, now time.Time) cart.Effect {
		once.Do(happens)
		return rule(c, limits, now)
	}
}

// together decides requests as one group, and returns what becomes of each.
func together(t *testing.T, s *Store, ref Ref, requests ...cart.Request) (statuses []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ephemeral.Patience(2*time.Second))
	defer cancel()
	members := make([]*member, len(requests))
	for i, r := range requests {
		r.NewID, r.TTL, r.Limits = "ID", time.Hour, carttest.Limits
		members[i] = &member{ctx: ctx, Request: r, done: make(chan struct{})}
	}
	s.decideAll(ref, members, 0)
	for _, m := range members {
		o, err := m.result()
		status := string(o.Status)
		switch {
		case err != nil:
			status = err.Error()
		case o.Effect.Refusal != nil:
			status += " " + string(o.Effect.Refusal.Code)
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// A commit that fails finds what other instances have applied under the keys, each of which is of its own change.
func TestGroup_LearnsWhatWasAppliedUnderEachKey(t *testing.T) {
	t.Parallel()
	mine, other := openPair(t)
	ref := CustomerRef(1, "c")
	adds := func(s *Store, on Conditions) Outcome {
		return assert.Must(s.Change(t.Context(), ref, on, Attempt{CartID: "ID", Limits: carttest.Limits}, cart.Change{Rule: addsOne("1")}))(t)
	}
	first := adds(other, Conditions{Key: "k0", Fingerprint: "f0"})
	a, b := Conditions{Key: "kA", Fingerprint: "fA"}, Conditions{Key: "kB", Fingerprint: "fB"}
	absent := cart.SetQuantity(cart.Item{ID: "9"}, 1, cart.Bounds{Max: 1}, "")
	got := together(t, mine, ref,
		cart.Request{Conditions: Conditions{Key: "k0", Fingerprint: "f0"}, Change: Change{Rule: addsOne("1")}},
		cart.Request{Conditions: a, Change: Change{Rule: absent}},
		cart.Request{Conditions: b, Change: Change{Rule: meanwhile(func() { adds(other, b) }, addsOne("1"))}},
	)
	assert.Equal(t, got, []string{"replayed", "refused " + string(problem.ItemNotFound), "replayed"}, "the changes")

	ifMatch := Conditions{Key: "kC", Fingerprint: "fC", IfMatch: " " + adds(other, Conditions{}).Tag() + " "}
	got = together(t, mine, ref,
		cart.Request{Change: Change{Rule: meanwhile(func() { adds(other, ifMatch) }, addsOne("1"))}},
		cart.Request{Conditions: ifMatch, Change: Change{Rule: addsOne("1")}},
	)
	assert.Equal(t, got, []string{"applied", "replayed"}, "a change after which the cart has another version, and one for this version")
	held := assert.Must(other.Load(t.Context(), ref))(t)
	assert.Equal(t, held.Count(), first.Count()+4, "what the cart holds")
}

// However many keyed changes are decided together, the newest keys stay, and what is refused costs none of them.
func TestGroup_KeepsTheNewestKeys(t *testing.T) {
	t.Parallel()
	s, _ := openPair(t)
	ref := CustomerRef(1, "c")
	keyed := func(prefix string, n int, rule cart.Rule) (all []cart.Request) {
		for i := range n {
			key := fmt.Sprint(prefix, i)
			all = append(all, cart.Request{Conditions: Conditions{Key: key, Fingerprint: key}, Change: Change{Rule: rule}})
		}
		return all
	}
	kept := func(prefix string) (n int) {
		for key := range s.Client.HGetAll(t.Context(), ref.KeysKey()).Val() {
			if strings.HasPrefix(key, prefix) {
				n++
			}
		}
		return n
	}
	add := cart.Add(cart.NewLine{ID: "1", Quantity: 1, Price: 100, Bounds: cart.Bounds{Max: 10000, Stock: -1}})
	refused := cart.SetQuantity(cart.Item{ID: "9"}, 1, cart.Bounds{Max: 1}, "")
	together(t, s, ref, keyed("a", 50, add)...)
	together(t, s, ref, append(keyed("b", cart.KeysKept, add), keyed("refused", 200, refused)...)...)
	assert.That(t, kept("a") == 0 && kept("b") == cart.KeysKept, "%d of the first, %d of the next", kept("a"), kept("b"))
	got := together(t, s, ref, append(keyed("c", 1, add), keyed("refused", 100, refused)...)...)
	assert.That(t, got[0] == "applied" && kept("b") == cart.KeysKept-1, "%s, %d are left", got[0], kept("b"))
	together(t, s, ref, keyed("d", maxGroup, add)...)
	together(t, s, ref, keyed("e", maxGroup, add)...)
	assert.That(t, kept("e") == maxGroup && kept("") == maxGroup, "%d of the last, %d in all", kept("e"), kept(""))
}

// A rule that panics fails those that are decided with it, each in its own goroutine, and nobody after them.
func TestQueue_GoesOnAfterAPanic(t *testing.T) {
	t.Parallel()
	s, _ := openPair(t)
	ref := CustomerRef(1, "c")
	makes := func(rule cart.Rule) (panicked any, err error) {
		defer func() { panicked = recover() }()
		_, err = s.Change(t.Context(), ref, Conditions{}, Attempt{CartID: "ID", Limits: carttest.Limits}, Change{Rule: rule})
		return nil, err
	}
	panics := func(*cart.Cell, cart.Limits, time.Time) cart.Effect { panic("a fault of the rule") }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			panicked, err := makes(panics)
			assert.That(t, strings.HasPrefix(fmt.Sprint(panicked), "a fault of the rule\n\n"), "%.60v, %v", panicked, err)
		})
	}
	all.Wait()
	panicked, err := makes(addsOne("1"))
	assert.That(t, panicked == nil && err == nil, "afterwards: %v, %v", panicked, err)
}

// A change without effect on a cart that was never used is not remembered, nor for those that are decided with it.
func TestGroup_RemembersOnlyWhatIsStored(t *testing.T) {
	t.Parallel()
	s, _ := openPair(t)
	absent := cart.Item{ID: "9"}
	got := together(t, s, CustomerRef(1, "c"),
		cart.Request{Conditions: Conditions{Key: "k", Fingerprint: "f1"}, Change: Change{Rule: cart.Remove(absent)}},
		cart.Request{Conditions: Conditions{Key: "k", Fingerprint: "f2"}, Change: Change{Rule: cart.SetQuantity(absent, 1, cart.Bounds{Max: 1}, "")}},
	)
	assert.Equal(t, got, []string{"applied", "refused " + string(problem.ItemNotFound)}, "the changes")
}
