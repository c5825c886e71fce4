package redisstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/auth/sealed"
	"commerce/cart/carttest"
	"commerce/cart/handover"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/transfer"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// TestSchedules proves what hand-overs make of carts. These tests are about where the lines go, which
// codes are refused, and what whoever made a link can see afterwards.

// redeemKey returns an Idempotency-Key as a redeemer makes one.
func redeemKey(name string) string { return name + strings.Repeat("-xyz", 6) }

func (d *desk) handOver(token auth.CartToken) string {
	d.t.Helper()
	return assert.Must(d.handovers.Offer(d.t.Context(), d.as("", token)))(d.t).Code
}

func (d *desk) agentsCode(token auth.CartToken) string {
	d.t.Helper()
	v := d.as("", token)
	c, _ := d.read(v)
	return d.handovers.OfferOf(v, c, true).Code
}

func (d *desk) redeem(v *service.Visit, code, key string) (*service.Visit, service.Changed) {
	d.t.Helper()
	return v, assert.Must(d.handovers.Redeem(d.t.Context(), v, handover.Redemption{Code: code, Key: redeemKey(key)}))(d.t)
}

func (d *desk) wantRefused(v *service.Visit, code string, want problem.Code) {
	d.t.Helper()
	_, err := d.handovers.Redeem(d.t.Context(), v, handover.Redemption{Code: code, Key: redeemKey("refused")})
	p, ok := errors.AsType[*problem.Error](err)
	assert.That(d.t, ok && p.Code == want, "redeemed: %v, want %s", err, want)
}

func problemOf(err error, code problem.Code) *problem.Error {
	if p, ok := errors.AsType[*problem.Error](err); ok && p.Code == code {
		return p
	}
	return nil
}

func TestHandOver_GoesWhereTheRedeemerShops(t *testing.T) {
	t.Parallel()
	laptop := tokenOf("laptop")
	for name, test := range map[string]struct {
		customers, laptops string // lines in the carts of "c" and of the laptop's guest
		customer           string
		token              auth.CartToken
		fresh              bool
		want               string
	}{
		"a customer":                            {customers: "3×1", customer: "c", want: "3×1 1×2"},
		"a customer without a cart":             {customer: "c", want: "1×2"},
		"a customer with a guest's cart":        {customers: "3×1", laptops: "4×1", customer: "c", token: laptop, want: "3×1 4×1 1×2"},
		"a guest with a cart":                   {laptops: "4×1 1×1", token: laptop, want: "4×1 1×3"},
		"a guest with an empty cart":            {token: laptop, fresh: true, want: "1×2"},
		"a guest without a token":               {fresh: true, want: "1×2"},
		"the guest whose cart it is, by a link": {token: tokenOf("t"), fresh: true, want: "1×2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDesk(t, test.customers, "1×2")
			d.fill(d.as("", laptop), test.laptops)
			code := d.handOver(d.token)
			for range 2 { // the second is a retry
				v := d.as(test.customer, test.token)
				d.Merge(t.Context(), v, "")
				_, changed := d.redeem(v, code, "redeemer")
				assert.Equal(t, linesOf(changed.Cart), test.want, "it answers")
				fresh := v.Token != "" && v.Token != test.token
				assert.That(t, fresh == test.fresh && !v.Fresh, "a fresh token: %v, want %v", fresh, test.fresh)
				d.wantLines(d.as(test.customer, v.Token), test.want)
			}
			d.wantLines(d.as("", d.token), "")
			d.wantSettled()
		})
	}
}

func TestHandOver_KnowsThePreviousKey(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2")
	code := d.handOver(d.token)
	d.Keys = assert.Must(sealed.New(strings.Repeat("n", 32), strings.Repeat("k", 32)))(t)
	v, _ := d.redeem(d.as("", ""), code, "phone")
	again, changed := d.redeem(d.as("", ""), code, "phone")
	assert.That(t, again.Token == v.Token && changed.Replayed, "a retry leads to another token")
	d.Keys = assert.Must(sealed.New(strings.Repeat("n", 32), ""))(t)
	d.wantRefused(d.as("", ""), code, problem.NotFound)
}

// Whoever made a link knows the code, the old token and everything about the old cart, but not the
// redeemer's key. That must show nothing of what the shopper adds.
func TestHandOver_WhoeverMadeTheLinkSeesNothing(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		code  func(*desk) string
		keeps bool
		as    func(*desk) *service.Visit
	}{
		"a guest's cart, to a fresh token":           {code: func(d *desk) string { return d.handOver(d.token) }, as: func(d *desk) *service.Visit { return d.as("", "") }},
		"a guest's cart, though an agent is kept":    {code: func(d *desk) string { return d.handOver(d.token) }, keeps: true, as: func(d *desk) *service.Visit { return d.as("", "") }},
		"an agent's cart, to a fresh token":          {code: func(d *desk) string { return d.agentsCode(d.token) }, as: func(d *desk) *service.Visit { return d.as("", "") }},
		"an agent's cart, to a cart in use":          {code: func(d *desk) string { return d.agentsCode(d.token) }, keeps: true, as: func(d *desk) *service.Visit { return d.as("", tokenOf("laptop")) }},
		"an agent's cart, to a customer, being kept": {code: func(d *desk) string { return d.agentsCode(d.token) }, keeps: true, as: func(d *desk) *service.Visit { return d.as("c", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDesk(t, "", "1×2")
			d.add(d.as("", tokenOf("laptop")), 4, 1)
			code, v := r.code(d), r.as(d)
			assert.Must(d.handovers.Redeem(t.Context(), v, handover.Redemption{Code: code, Key: redeemKey("shopper's"), KeepAgent: r.keeps}))(t)
			d.add(v, 3, 1)

			d.wantLines(d.as("", d.token), "")
			to, _, err := d.redis.Moved(t.Context(), d.guest)
			assert.That(t, err == nil && to == redisstore.Ref{}, "the agent is led to %v, %v", to, err)
			for i := range 50 { // guessed keys
				d.wantRefusedKey(code, redeemKey(fmt.Sprint("guess ", i)))
			}
			d.wantRefusedKey(code, redeemKey("shopper's")+"-")
			d.add(d.as("", d.token), 5, 1) // and then a code of the token's next cart
			own, _ := d.redeem(d.as("", ""), r.code(d), "shopper's")
			d.wantLines(own, "5×1")
			got, _ := d.read(v)
			assert.That(t, got.Has("1") && got.Has("3") && !got.Has("5"), "the shopper has %q", linesOf(got))
		})
	}
}

func (d *desk) wantRefusedKey(code, key string) {
	d.t.Helper()
	_, err := d.handovers.Redeem(d.t.Context(), d.as("", ""), handover.Redemption{Code: code, Key: key})
	assert.That(d.t, problemOf(err, problem.NotFound) != nil, "with another key: %v", err)
}

func TestHandOver_LeadsAnAgentToAFreshTokenThatKeepsIt(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×2")
	_, moved, err := d.redis.Moved(t.Context(), d.guest)
	assert.That(t, err == nil && moved == "", "before: %v, %v", moved, err)
	v := d.as("", "")
	assert.Must(d.handovers.Redeem(t.Context(), v, handover.Redemption{Code: d.agentsCode(d.token), Key: redeemKey("shopper's"), KeepAgent: true}))(t)
	to, moved, err := d.redis.Moved(t.Context(), d.guest)
	assert.That(t, err == nil && moved != "" && to == redisstore.GuestRef(d.store.ID, v.Token), "the agent is led to %v, %v", to, err)
	left := d.ttl(d.guest.MovedKey())
	assert.That(t, left > 719*time.Hour && left <= 720*time.Hour, "for %v", left)
}

func TestHandOver_AFullCartTakesNothing(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×1 2×1 3×1")
	laptop := tokenOf("laptop")
	d.add(d.as("", laptop), 4, 1)
	d.Limits.Lines = 1
	code := d.handOver(d.token)
	d.wantRefused(d.as("", laptop), code, problem.CartFull)
	d.wantLines(d.as("", laptop), "4×1")
	d.wantLines(d.as("", d.token), "1×1 2×1 3×1")
	d.wantSettled()
	d.Limits.Lines = carttest.Limits.Lines
	d.redeem(d.as("", laptop), code, "later")
	d.wantLines(d.as("", laptop), "4×1 1×1 2×1 3×1")
}

// A fresh token is a new cart of the client's address.
func TestHandOver_CountsAsACreation(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "3×1", "1×1")
	d.fill(d.as("", tokenOf("next")), "2×1")
	first, second := d.handOver(d.token), d.handOver(tokenOf("next"))
	d.Creation = limit.NewQuota(limit.Config{Rates: []limit.Rate{{Uses: 1, Per: time.Hour}}, Now: d.now})
	d.redeem(d.as("", ""), first, "phone")
	d.redeem(d.as("", ""), first, "phone") // a retry creates nothing
	d.wantRefused(d.as("", ""), second, problem.RateLimited)
	d.wantLines(d.as("", tokenOf("next")), "2×1")
	d.redeem(d.as("c", ""), second, "customer")
}

func TestHandOver_WorksOnACluster(t *testing.T) {
	t.Parallel()
	d := openDeskOn(t, dial(t, asService(t, ephemeral.Cluster(t))), time.Now)
	for i := range 8 { // carts in several slots
		token := tokenOf(fmt.Sprint("t", i))
		d.fill(d.as("", token), "1×2 2×1")
		code := d.handOver(token)
		v, _ := d.redeem(d.as("", ""), code, fmt.Sprint("phone", i))
		d.wantLines(d.as("", v.Token), "1×2 2×1")
		d.wantLines(d.as("", token), "")
		again := d.handOver(v.Token)
		d.redeem(d.as("c", ""), again, fmt.Sprint("laptop", i))
		d.wantLines(d.as("c", ""), fmt.Sprintf("1×%d 2×%d", 2*(i+1), i+1))
	}
}

func TestHandOver_TellsItsDurability(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	d := openDeskOn(t, dial(t, p.master.URL), time.Now)
	d.fill(d.as("", d.token), "2×1")
	code := d.handOver(d.token)
	d.redis.Durable = true
	tries := 0
	p.await(func() bool { // on a busy machine, the replica may need more time at first
		tries++
		d.forward.Add(int64(time.Second))
		token := tokenOf(fmt.Sprint("try", tries))
		d.fill(d.as("", token), "1×2")
		_, changed := d.redeem(d.as("", ""), d.handOver(token), "phone")
		return changed.Durability == redisstore.Confirmed
	})

	p.replica.Freeze()
	defer p.replica.Thaw()
	v, changed := d.redeem(d.as("", ""), code, "phone")
	assert.Equal(t, changed.Durability, "unconfirmed", "with a replica that does not answer")
	// Until the replica has the lines, they go no further: a failover would bring them twice.
	d.read(d.as("c", v.Token))
	d.wantLines(d.as("", v.Token), "2×1")
	p.replica.Thaw()
	p.await(func() bool {
		d.forward.Add(int64(time.Second))
		c, _ := d.read(d.as("c", v.Token))
		return linesOf(c) == "2×1"
	})
}

func (d *desk) bring(to redisstore.Ref, c redisstore.Claimed) {
	d.t.Helper()
	products := assert.Must(d.goods.Products(d.t.Context(), d.store.ID, c.Cart.ProductIDs()))(d.t)
	assert.Must(d.redis.Apply(d.t.Context(), to, c, transfer.MergeRules{Strategy: transfer.Sum, Bounds: transfer.MergeBounds(c.Cart, products, carttest.Limits)}, nil, rand.Text()))(d.t)
}
