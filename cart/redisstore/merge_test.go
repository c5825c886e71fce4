package redisstore_test

import (
	"crypto/rand"
	"maps"
	"slices"
	"testing"
	"time"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/deploy/assert"
)

// TestSchedules checks what merges make of carts. These tests are about when a
// merge is made, what it waits for, and how long its traces live.

// The steps of a merge, after each of which a request may die.
const (
	intended = iota + 1
	claimedStep
	appliedStep
	finished
	forgotten
)

// dieAfter runs a merge of "c" like a request that dies after this step.
func (d *desk) dieAfter(step int, token auth.CartToken) {
	d.t.Helper()
	ctx, guest, n := d.t.Context(), redisstore.GuestRef(d.store.ID, token), newNote()
	w := assert.Must(d.redis.FindGuest(ctx, d.customer, guest, ""))(d.t)
	var c redisstore.Claimed
	for _, do := range []func() error{
		func() error {
			return d.redis.Reserve(ctx, d.customer, guest, n, w.Needs, carttest.Limits, redisstore.Conditions{})
		},
		func() (err error) { c, err = d.redis.Claim(ctx, d.customer, guest, n, w.Needs, ""); return },
		func() error { d.bring(d.customer, c); return nil },
		func() error { finish(d, guest, c); return nil },
		func() error { return d.redis.Forget(ctx, d.customer, n) },
	}[:step] {
		assert.NoError(d.t, do())
	}
}

func (d *desk) brings() cart.Reservation {
	d.t.Helper()
	return assert.Must(d.redis.Load(d.t.Context(), d.guest))(d.t).RoomNeeded()
}

// reserve writes a note for the guest's cart as it is now, and returns its name.
func (d *desk) reserve() (note string) {
	d.t.Helper()
	note = newNote()
	assert.NoError(d.t, d.redis.Reserve(d.t.Context(), d.customer, d.guest, note, d.brings(), carttest.Limits, redisstore.Conditions{}))
	return note
}

type call struct {
	make  func(*desk, *service.Visit) *cart.MergeReport
	after string
}

// calls are all kinds of requests, with what they make of a cart of "1×1 2×1" without a merge.
var calls = map[string]call{
	"read": {
		func(d *desk, v *service.Visit) *cart.MergeReport { _, m := d.read(v); return m },
		"1×1 2×1",
	},
	"count": {
		func(d *desk, v *service.Visit) *cart.MergeReport {
			_, _, err := d.Count(d.t.Context(), v)
			assert.Require(d.t, err == nil, "%v", err)
			return v.Merge()
		},
		"1×1 2×1",
	},
	"add": {
		func(d *desk, v *service.Visit) *cart.MergeReport { return d.add(v, 1, 1) },
		"1×2 2×1",
	},
	"refused add": {
		func(d *desk, v *service.Visit) *cart.MergeReport { return d.add(v, 404, 1) },
		"1×1 2×1",
	},
	"set": {
		func(d *desk, v *service.Visit) *cart.MergeReport {
			return d.edit(v, cart.Edit{Quantity: new(int64(9))})
		},
		"1×1 2×9",
	},
	"edit": {
		func(d *desk, v *service.Visit) *cart.MergeReport {
			return d.edit(v, cart.Edit{Quantity: new(int64(9)), Notice: new("n")})
		},
		"1×1 2×9",
	},
	"remove": {
		func(d *desk, v *service.Visit) *cart.MergeReport {
			return d.change(v, func() (service.Changed, error) {
				return d.Do(d.t.Context(), v, redisstore.Conditions{}, service.Op{Remove: new(cart.LineID("1"))})
			})
		},
		"2×1",
	},
	"clear": {
		func(d *desk, v *service.Visit) *cart.MergeReport { return d.clear(v) },
		"",
	},
}

func (d *desk) edit(v *service.Visit, e cart.Edit) *cart.MergeReport {
	d.t.Helper()
	return d.change(v, func() (service.Changed, error) {
		return d.Edit(d.t.Context(), v, redisstore.Conditions{}, service.Edit{Item: "2", Edit: e})
	})
}

// An edit is computed from a read. It finds a line that is on its way from a guest's cart.
func TestMerge_AnEditFindsALineThatItBrings(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "1×1 2×1", "2×2 3×1")
	d.dieAfter(claimedStep, d.token)
	changed, err := d.Edit(t.Context(), d.as("c", ""), redisstore.Conditions{}, service.Edit{Item: "3", Edit: cart.Edit{Notice: new("n")}})
	assert.That(t, err == nil && changed.Cart.Line("3") != nil && changed.Cart.Line("3").Notice == "n",
		"%v, the cart holds %v", err, linesOf(changed.Cart))
}

func TestMerge_AClaimExpiresAfterAFixedTimeAndBeforeItsOffers(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "1×1")
	aside, id := d.guest.ClaimedKey(), d.brings().CartID
	d.dieAfter(appliedStep, d.token)
	if left := d.ttl(aside); left < 2159*time.Hour || left > 2160*time.Hour { // the TTL of a customer's cart
		t.Errorf("it expires in %v", left)
	}
	offers, left := d.ttl(d.customer.OfferedKey(id)), d.ttl(aside)
	assert.That(t, offers >= left+6*24*time.Hour, "the offered quantities expire in %v, the claimed cart in %v", offers, left)
	d.client.PExpire(t.Context(), aside, time.Hour)
	assert.Must(d.redis.Claim(t.Context(), d.customer, d.guest, "", cart.Reservation{}, ""))(t)
	left = d.ttl(aside)
	assert.That(t, left >= 0 && left <= time.Hour, "claimed again, it expires in %v", left)
}

func TestMerge_WaitsWhileTheCatalogIsUnreachable(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDesk(t, "1×1 2×1", "2×2 3×1")
			d.goods.out.Store(3)
			report := calls[name].make(d, d.as("c", d.token))
			assert.That(t, report == nil, "reported %+v", report)
			d.wantLines(d.as("c", d.token), calls[name].after)
			d.wantSettled() // no merge was begun
			d.goods.out.Store(0)
			d.wantLines(d.as("", d.token), "2×2 3×1")
			_, report = d.read(d.as("c", d.token))
			assert.That(t, report != nil && report.Lines == 2, "later: %+v", report)
			d.wantSettled()
		})
		// Without a catalog after the claim no line may be lost, whatever the customer does.
		t.Run(name+" after a claim", func(t *testing.T) {
			t.Parallel()
			d := openDesk(t, "1×1 2×1", "2×2 3×1")
			d.dieAfter(claimedStep, d.token)
			d.goods.out.Store(3)
			calls[name].make(d, d.as("c", ""))
			d.wantLines(d.as("c", ""), calls[name].after)
			d.goods.out.Store(0)
			got, _ := d.read(d.as("c", ""))
			two, three := got.Line("2"), got.Line("3")
			assert.That(t, two != nil && two.Quantity >= 2 && three != nil && three.Quantity == 1, "later: %q", linesOf(got))
			d.wantSettled()
		})
	}
}

// The first click removed a line of the guest's cart. The second one comes after the login.
func TestMerge_ASecondClickRemovesNoOtherLine(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	changes := func(ref redisstore.Ref, rule cart.Rule) redisstore.Outcome {
		return assert.Must(d.redis.Change(t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: rand.Text(), Limits: carttest.Limits}, redisstore.Only(rule)))(t)
	}
	for _, id := range []cart.LineID{"1", "1.p2"} {
		changes(d.guest, cart.Add(cart.NewLine{ID: id, Quantity: 1, Price: 100, Bounds: cart.Bounds{Max: 9, Stock: -1}}))
	}
	changes(d.guest, cart.Remove(cart.Item{ID: "1"}))
	d.dieAfter(forgotten, d.token)
	o := changes(d.customer, cart.Remove(cart.Item{ID: "1"}))
	assert.That(t, !o.Effect.Altered && o.Has("1.p2"), "after the second click, the cart has %+v", o.Lines)
}
