package redisstore

import (
	"context"
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
