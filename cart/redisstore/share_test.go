package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/auth/sealed"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/share"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// share shares the cart of a visit, with an Idempotency-Key or "".
func (d *desk) share(v *service.Visit, key string) service.Link {
	d.t.Helper()
	link, _, err := d.Share(d.t.Context(), v, key)
	assert.NoError(d.t, err)
	return link
}

// wantShared compares the lines under a code; "" if it must open nothing.
func (d *desk) wantShared(code, want string) {
	d.t.Helper()
	shared, err := d.SharedCart(d.t.Context(), d.as("", ""), code)
	assert.That(d.t, (err == nil) == (want != "") && linesOf(shared.Cart) == want, "the share is %q, %v, want %q", linesOf(shared.Cart), err, want)
}

func (d *desk) wantDeleted(v *service.Visit, code string, want bool) {
	d.t.Helper()
	err := d.Unshare(d.t.Context(), v, "", code)
	assert.That(d.t, (err == nil) == want && (err == nil || errors.Is(err, cart.ErrNoCode)), "deleted: %v, want %v", err, want)
}

// operator is the store as the commands for erasure open it.
func (d *desk) operator() *redisstore.Store {
	return redisstore.New(redisstore.Config{Client: d.client, Beside: share.Stored()})
}

// held counts the keys of a shopper by kind. Each has a TTL.
func (d *desk) held(ref redisstore.Ref) map[redisstore.HoldingKind]int {
	d.t.Helper()
	kinds := map[redisstore.HoldingKind]int{}
	for _, h := range assert.Must(d.operator().Holdings(d.t.Context(), ref))(d.t) {
		kinds[h.Kind]++
		assert.That(d.t, h.Expires > 0, "%s has no TTL", h.Key)
	}
	return kinds
}

func onSingleAndCluster(t *testing.T, test func(*desk)) {
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{"single": ephemeral.Redis, "cluster": ephemeral.Cluster} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDeskOn(t, dial(t, asService(t, url(t))), time.Now)
			d.client = dial(t, url(t))
			test(d)
		})
	}
}

func TestShare_IsACopyFor30Days(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "3×1", "1×2 2×1")
	for _, v := range []func() *service.Visit{func() *service.Visit { return d.as("", d.token) }, func() *service.Visit { return d.as("c", "") }} {
		c, _ := d.read(v())
		link := d.share(v(), "k")
		assert.That(t, time.Until(link.ExpiresAt.Add(-720*time.Hour)).Abs() < 2*time.Second && link.URL == "", "%+v", link)
		assert.That(t, len(link.Code) == 26 && d.share(v(), "").Code != link.Code, "the code is %q", link.Code)
		d.add(v(), 4, 1)
		d.clear(v())
		d.pass(time.Hour)
		d.wantShared(link.Code, linesOf(c)) // which does not renew it
		again, replayed, err := d.Share(t.Context(), v(), "k")
		assert.That(t, err == nil && replayed && again.Code == link.Code && link.ExpiresAt.Sub(again.ExpiresAt) == time.Hour, "a repeat: %v, %+v", err, again)
		_, _, err = d.Share(t.Context(), v(), "another")
		assert.That(t, errors.Is(err, cart.ErrEmpty), "an empty cart is shared: %v", err)
		other := assert.Must(d.Visit(auth.Caller{Store: &store.Store{ID: d.store.ID + 1, Currency: "SAR"}}))(t)
		_, err = d.SharedCart(t.Context(), other, link.Code)
		assert.That(t, errors.Is(err, cart.ErrNoCode), "another store has it: %v", err)
		for _, wrong := range []string{"", link.Code[:25], link.Code + "A", link.Code[:4], strings.ToUpper(link.Code), "*"} {
			d.wantShared(wrong, "")
		}
		d.pass(718 * time.Hour)
		d.wantShared(link.Code, linesOf(c))
		d.pass(time.Hour)
		d.wantShared(link.Code, "")
		d.wantDeleted(v(), link.Code, false)
	}
	assert.That(t, !strings.Contains(strings.Join(d.keys(), " "), ":s"), "shares are left: %q", d.keys())
}

func TestShare_TenAtATime(t *testing.T) {
	onSingleAndCluster(t, func(d *desk) {
		d.fill(d.as("", d.token), "1×1")
		var codes []string
		for i := range 10 {
			codes = append(codes, d.share(d.as("", d.token), []string{"", fmt.Sprint(i)}[i%2]).Code)
		}
		refused := func() {
			d.t.Helper()
			for _, key := range []string{"", "k"} {
				_, _, err := d.Share(d.t.Context(), d.as("", d.token), key)
				assert.That(d.t, problemOf(err, problem.ValidationFailed) != nil, "the 11th: %v", err)
			}
		}
		refused()
		assert.Equal(d.t, d.share(d.as("", d.token), "9").Code, codes[9], "a repeat")
		for i := range 60 { // more than are remembered as deleted
			d.wantDeleted(d.as("", d.token), codes[0], true)
			d.wantShared(codes[0], "")
			codes = append(codes[1:], d.share(d.as("", d.token), fmt.Sprint("new ", i)).Code)
		}
		refused()
		for _, code := range codes {
			d.wantShared(code, "1×1")
		}
		v := d.as("", d.token)
		assert.NoError(d.t, d.client.Del(d.t.Context(), v.Ref().OtherKey("s", auth.CartToken(codes[0]).Digest())).Err())
		d.share(v, "in the place of a lost one")
		refused()
		d.fill(v, "2×1")
		d.wantDeleted(v, codes[1], true)
		d.wantShared(d.share(v, "k").Code, "1×1 2×1") // nothing is left of what was refused
		d.read(d.as("c", d.token))
		d.fill(d.as("", d.token), "2×1") // the token's next cart
		d.share(d.as("", d.token), "9")
		d.share(d.as("c", ""), "9")
	})
}

func TestShare_KnowsThePreviousKey(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2")
	first, deleted := d.share(d.as("", d.token), "k"), d.share(d.as("", d.token), "deleted")
	d.wantDeleted(d.as("", d.token), deleted.Code, true)
	d.Keys = assert.Must(sealed.New(strings.Repeat("n", 32), strings.Repeat("k", 32)))(t)
	assert.Equal(t, d.share(d.as("", d.token), "k"), first, "a repeat after a rotation")
	_, _, err := d.Share(t.Context(), d.as("", d.token), "deleted")
	assert.That(t, errors.Is(err, cart.ErrNoCode), "a late repeat shares again: %v", err)
	next := d.share(d.as("", d.token), "next")
	d.wantShared(first.Code, "1×2")
	d.Keys = assert.Must(sealed.New(strings.Repeat("m", 32), ""))(t)
	d.wantShared(first.Code, "")
	d.wantShared(next.Code, "")
	d.wantDeleted(d.as("", d.token), next.Code, false)
	d.Keys = nil
	d.wantShared(first.Code, "")
	_, _, err = d.Share(t.Context(), d.as("", d.token), "k")
	assert.That(t, errors.Is(err, cart.ErrNoCode), "without a key: %v", err)
}

func TestShare_IsDeletedByItsCartOrWhereThatWasMerged(t *testing.T) {
	onSingleAndCluster(t, func(d *desk) {
		d.fill(d.as("", d.token), "1×1")
		d.fill(d.as("other", ""), "1×1")
		first, second := d.share(d.as("", d.token), "1").Code, d.share(d.as("", d.token), "2").Code
		for _, stranger := range []*service.Visit{d.as("", ""), d.as("", tokenOf("x")), d.as("c", ""), d.as("other", "")} {
			d.wantDeleted(stranger, first, false)
		}
		d.wantDeleted(d.as("", d.token), first, true)
		d.wantDeleted(d.as("", d.token), first, true) // a repeat
		d.wantDeleted(d.as("c", d.token), second+"x", false)
		d.read(d.as("c", d.token))
		d.fill(d.as("", d.token), "2×1")
		for _, stranger := range []*service.Visit{d.as("", d.token), d.as("other", "")} { // also the token's next cart
			d.wantDeleted(stranger, second, false)
		}
		d.wantShared(second, "1×1")
		d.wantDeleted(d.as("c", ""), second, true)
		d.wantShared(second, "")
		d.wantDeleted(d.as("c", ""), second, true) // a repeat
	})
}

func TestShare_WithoutAKeyMayBeMadeOrDeletedAfterAFailure(t *testing.T) {
	t.Parallel()
	var late atomic.Bool // the replies of commits and deletions come too late
	client := dial(t, asService(t, ephemeral.Redis(t)))
	client.AddHook(&breaks{err: context.DeadlineExceeded, when: func(cmd redis.Cmder) bool {
		return late.Load() && slices.Contains([]string{"eval", "evalsha", "del"}, cmd.Name())
	}})
	d := openDeskOn(t, client, time.Now)
	d.fill(d.as("", d.token), "1×1")
	code := d.share(d.as("", d.token), "").Code
	late.Store(true)
	for key, want := range map[string]problem.Code{"": problem.OutcomeUnknown, "k": problem.Unavailable} {
		_, _, err := d.Share(t.Context(), d.as("", d.token), key)
		assert.That(t, problemOf(err, want) != nil, "share with the key %q: %v", key, err)
		err = d.Unshare(t.Context(), d.as("", d.token), key, code)
		assert.That(t, problemOf(err, want) != nil, "delete with the key %q: %v", key, err)
	}
	late.Store(false)
	d.wantDeleted(d.as("", d.token), code, true)
	d.wantShared(code, "")
}

func TestShare_IsCountedAsACreation(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "3×1", "1×1")
	d.Creation = limit.NewQuota(limit.Config{Rates: []limit.Rate{{Uses: 1, Per: time.Hour}}, Now: d.now})
	first := d.share(d.as("c", ""), "k")
	assert.Equal(t, d.share(d.as("c", ""), "k"), first, "a repeat")
	for _, v := range []*service.Visit{d.as("c", ""), d.as("", d.token)} {
		_, _, err := d.Share(t.Context(), v, "another")
		assert.That(t, problemOf(err, problem.RateLimited) != nil, "the second: %v", err)
	}
}

func TestShare_IsErased(t *testing.T) {
	onSingleAndCluster(t, func(d *desk) {
		d.fill(d.as("c", ""), "1×1")
		code, kept := d.share(d.as("c", ""), "k").Code, d.share(d.as("c", ""), "l").Code
		d.fill(d.as("other", ""), "1×1")
		others := d.share(d.as("other", ""), "k").Code
		before := d.held(d.customer)
		assert.That(d.t, before[share.KindCopy] == 2 && before[share.KindList] == 1, "it holds %v", before)
		assert.Must(d.operator().Erase(d.t.Context(), d.customer))(d.t)
		assert.Equal(d.t, len(d.held(d.customer)), 0, "kinds that are left")
		d.wantShared(code, "")
		d.wantShared(kept, "")
		d.wantShared(others, "1×1")
	})
}
