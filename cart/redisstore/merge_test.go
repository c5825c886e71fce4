package redisstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"commerce/auth"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
	"commerce/cart/service"
)

// setup opens a desk where the customer "c" and the guest with the token have these lines
// in their carts.
func setup(t *testing.T, s cart.Strategy, customers, guests string) (*desk, auth.CartToken) {
	t.Helper()
	d, token := openDesk(t, s), tokenOf("t")
	d.fill(d.as("c", ""), customers)
	d.fill(d.as("", token), guests)
	return d, token
}

// fill adds lines one by one, in the format of wantLines.
func (d *desk) fill(sh *service.Visit, lines string) {
	d.t.Helper()
	for _, line := range strings.Fields(lines) {
		var product, quantity int64
		if _, err := fmt.Sscanf(line, "%d×%d", &product, &quantity); err != nil {
			d.t.Fatal(err)
		}
		d.add(sh, product, quantity)
	}
}

// The steps of a merge, after each of which a request may die.
const (
	intended = iota + 1
	claimedStep
	appliedStep
	finished
	forgotten
)

// dieAfter runs a merge like a request that dies after this step.
func (d *desk) dieAfter(step int, customer string, token auth.CartToken) {
	d.t.Helper()
	ctx := d.t.Context()
	ref, guest := redisstore.CustomerRef(d.store.ID, customer), redisstore.GuestRef(d.store.ID, token)
	n, w := newNote(), d.holds(token)
	var c redisstore.Claimed
	for _, do := range []func() error{
		func() error { return d.redis.Intend(ctx, ref, guest, n, w.Bring, carttest.Limits) },
		func() (err error) { c, err = d.redis.Claim(ctx, ref, guest, n, w.Bring); return },
		func() error {
			products, err := d.goods.Products(ctx, d.store.ID, c.Cart.ProductIDs())
			if err == nil {
				_, err = d.redis.Apply(ctx, ref, c, d.strategy, cart.MergeBounds(c.Cart, products, carttest.Limits), rand.Text())
			}
			return err
		},
		func() error { return d.redis.Finish(ctx, ref, guest, c) },
		func() error { return d.redis.Forget(ctx, ref, n) },
	}[:step] {
		if err := do(); err != nil {
			d.t.Fatal(err)
		}
	}
}

// holds returns what waits to be merged under a token.
func (d *desk) holds(token auth.CartToken) redisstore.Waiting {
	d.t.Helper()
	w, err := d.redis.WaitingUnder(d.t.Context(), redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token), "")
	if err != nil {
		d.t.Fatal(err)
	}
	return w
}

// afterEachStep runs a test once per step, up to last: after setup and a request of "c"
// that died after that step.
func afterEachStep(t *testing.T, last int, customers, guests string, test func(*testing.T, *desk, auth.CartToken)) {
	t.Helper()
	for step := intended; step <= last; step++ {
		t.Run(fmt.Sprintf("after step %d", step), func(t *testing.T) {
			t.Parallel()
			d, token := setup(t, cart.Sum, customers, guests)
			d.dieAfter(step, "c", token)
			test(t, d, token)
		})
	}
}

// calls are all kinds of requests. merged is the result for a cart of "1×1 2×1" into which
// "2×2 3×1" is merged, before the result without the merge.
var calls = map[string]struct {
	make           func(*desk, *service.Visit) *cart.MergeReport
	merged, before string
}{
	"read": {
		make:   func(d *desk, sh *service.Visit) *cart.MergeReport { _, m := d.read(sh); return m },
		merged: "1×1 2×3 3×1", before: "1×1 2×1",
	},
	"count": {
		make: func(d *desk, sh *service.Visit) *cart.MergeReport {
			_, _, err := d.Count(d.t.Context(), sh)
			if err != nil {
				d.t.Fatal(err)
			}
			return sh.Merge()
		},
		merged: "1×1 2×3 3×1", before: "1×1 2×1",
	},
	"add": {
		make:   func(d *desk, sh *service.Visit) *cart.MergeReport { return d.add(sh, 1, 1) },
		merged: "1×2 2×3 3×1", before: "1×2 2×1",
	},
	"refused add": {
		make:   func(d *desk, sh *service.Visit) *cart.MergeReport { return d.add(sh, 404, 1) },
		merged: "1×1 2×3 3×1", before: "1×1 2×1",
	},
	"set": {
		make: func(d *desk, sh *service.Visit) *cart.MergeReport {
			return d.change(sh, func() (service.Changed, error) {
				return d.Edit(d.t.Context(), sh, redisstore.Conditions{}, service.Edit{Item: "2", Edit: cart.Edit{Quantity: new(int64(9))}})
			})
		},
		merged: "1×1 2×9 3×1", before: "1×1 2×9",
	},
	"edit": {
		make: func(d *desk, sh *service.Visit) *cart.MergeReport {
			return d.change(sh, func() (service.Changed, error) {
				return d.Edit(d.t.Context(), sh, redisstore.Conditions{}, service.Edit{Item: "2", Edit: cart.Edit{Quantity: new(int64(9)), Notice: new("n")}})
			})
		},
		merged: "1×1 2×9 3×1", before: "1×1 2×9",
	},
	"remove": {
		make: func(d *desk, sh *service.Visit) *cart.MergeReport {
			return d.change(sh, func() (service.Changed, error) {
				return d.Remove(d.t.Context(), sh, redisstore.Conditions{}, "1")
			})
		},
		merged: "2×3 3×1", before: "2×1",
	},
	"clear": {
		make:   func(d *desk, sh *service.Visit) *cart.MergeReport { return d.clear(sh) },
		merged: "", before: "",
	},
}

// An edit is computed from a read. It finds a line that is on its way from a guest's cart.
func TestMerge_AnEditFindsALineThatItBrings(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "1×1 2×1", "2×2 3×1")
	d.dieAfter(claimedStep, "c", token)
	changed, err := d.Edit(t.Context(), d.as("c", ""), redisstore.Conditions{}, service.Edit{Item: "3", Edit: cart.Edit{Notice: new("n")}})
	if err != nil || changed.Cart.Line("3") == nil || changed.Cart.Line("3").Notice != "n" {
		t.Errorf("%v, the cart holds %v", err, linesOf(changed.Cart))
	}
}

func TestMerge_IsResumedExactlyOnceAfterAnyStep(t *testing.T) {
	t.Parallel()
	for step := intended; step <= forgotten; step++ {
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			for _, withToken := range []bool{true, false} {
				t.Run(fmt.Sprintf("after step %d, %s, token %v", step, name, withToken), func(t *testing.T) {
					t.Parallel()
					d, token := setup(t, cart.Sum, "1×1 2×1", "2×2 3×1")
					d.dieAfter(step, "c", token)

					call, sh := calls[name], d.as("c", "")
					if withToken {
						sh = d.as("c", token)
					}
					report := call.make(d, sh)

					if step == intended && !withToken { // nothing was claimed: the guest keeps the cart
						d.wantLines(d.as("c", ""), call.before)
						d.wantLines(d.as("", token), "2×2 3×1")
						return
					}
					if report == nil || report.Lines != 2 { // whichever request has made the merge
						t.Errorf("report %+v", report)
					}
					d.wantLines(d.as("c", ""), call.merged)
					d.wantLines(d.as("c", token), call.merged)
					d.wantLines(d.as("", token), "")
					d.settle("c")
					d.wantSettled()
				})
			}
		}
	}
}

func TestMerge_RaisesTheVersionOnce(t *testing.T) {
	t.Parallel()
	afterEachStep(t, forgotten, "1×1", "1×2 2×1", func(t *testing.T, d *desk, token auth.CartToken) {
		for range 2 {
			if got, _ := d.read(d.as("c", token)); got.Version != 2 {
				t.Errorf("version %d, want 2", got.Version)
			}
		}
	})
}

func TestMerge_ResumedByThreeRequestsAtOnceCountsOnce(t *testing.T) {
	t.Parallel()
	afterEachStep(t, finished, "1×1", "1×2 2×1", func(t *testing.T, d *desk, token auth.CartToken) {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { d.read(d.as("c", token)) })
		}
		all.Wait()
		d.wantLines(d.as("c", token), "1×3 2×1")
		d.settle("c")
		d.wantSettled()
	})
}

func TestMerge_TheFirstCustomerWithATokenGetsItsCart(t *testing.T) {
	t.Parallel()
	for step := claimedStep; step <= forgotten; step++ {
		d, token := setup(t, cart.Sum, "", "1×2")
		d.dieAfter(step, "first", token)
		d.add(d.as("", token), 2, 1) // to a new cart of the token, since the old one was claimed
		d.wantLines(d.as("second", token), "2×1")
		d.wantLines(d.as("first", ""), "1×2")
		d.wantLines(d.as("first", token), "1×2")
		d.wantLines(d.as("second", ""), "2×1")
		d.settle("first")
		d.wantSettled()
	}
}

func TestMerge_IncludesWhatTheGuestAddsMeanwhile(t *testing.T) {
	t.Parallel()
	afterEachStep(t, forgotten, "", "1×2", func(t *testing.T, d *desk, token auth.CartToken) {
		d.add(d.as("", token), 1, 1)
		d.add(d.as("", token), 2, 1)
		d.wantLines(d.as("c", token), "1×3 2×1")
		d.add(d.as("", token), 2, 5)
		d.wantLines(d.as("c", token), "1×3 2×6")
		d.settle("c")
		d.wantSettled()
	})
}

// One change merges both: the cart that an earlier request claimed, and the newer one. The report
// is that of the latest merge.
func TestMerge_AChangeMergesEverythingThatWaits(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×2")
	d.dieAfter(claimedStep, "c", token)
	d.add(d.as("", token), 2, 1)
	if report := d.add(d.as("c", token), 3, 1); report == nil || report.Lines != 1 {
		t.Errorf("report %+v", report)
	}
	d.wantLines(d.as("c", ""), "1×2 2×1 3×1")
	d.wantSettled()
}

// A failover of the guest's master may lose the claim after the customer's master, another
// node, has applied it: the guest's cart is back, and grows.
func TestMerge_AfterALostClaimAddsOnlyTheGrowth(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[cart.Strategy]string{
		cart.Sum: "1×6 2×2 3×1", cart.Max: "1×3 2×1 3×1", cart.KeepGuest: "1×3 2×1 3×1", cart.KeepCustomer: "1×2 2×1 3×1",
	} {
		d, token := setup(t, strategy, "1×2", "1×3 2×1")
		guest := redisstore.GuestRef(d.store.ID, token)
		dump := d.client.Dump(t.Context(), guest.CartKey()).Val()
		d.read(d.as("c", token))
		if err := d.client.Restore(t.Context(), guest.CartKey(), time.Hour, dump).Err(); err != nil {
			t.Fatal(err)
		}
		d.add(d.as("", token), 1, 1)
		d.add(d.as("", token), 2, 1)
		d.add(d.as("", token), 3, 1)
		_, report := d.read(d.as("c", token))
		d.wantLines(d.as("c", token), want)
		if grown := map[cart.Strategy]int64{cart.Sum: 3}[strategy]; report.Lines != max(grown, 1) {
			t.Errorf("%s: %d lines reported", strategy, report.Lines)
		}
		d.wantSettled()
	}
}

// The same with a lost finish: the claimed cart is back.
func TestMerge_AfterALostFinishAddsNothing(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×3")
	aside := redisstore.GuestRef(d.store.ID, token).ClaimedKey()
	d.dieAfter(claimedStep, "c", token)
	dump := d.client.Dump(t.Context(), aside).Val()
	d.clear(d.as("c", ""))
	if err := d.client.Restore(t.Context(), aside, time.Hour, dump).Err(); err != nil {
		t.Fatal(err)
	}
	d.wantLines(d.as("c", token), "")
	d.wantSettled()
}

func TestMerge_OfferedQuantitiesOutliveTheClaim(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	d.dieAfter(appliedStep, "c", token)
	customer, guest := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token)
	c, err := d.redis.Claim(t.Context(), customer, guest, "", cart.Reservation{})
	if err != nil {
		t.Fatal(err)
	}
	if offers, aside := d.ttl(customer.OfferedKey(c.Cart.ID)), d.ttl(guest.ClaimedKey()); offers < aside+6*24*time.Hour {
		t.Errorf("the offered quantities expire in %v, the claimed cart in %v", offers, aside)
	}
}

func TestMerge_AClaimExpiresAfterAFixedTime(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	aside := redisstore.GuestRef(d.store.ID, token).ClaimedKey()
	d.dieAfter(claimedStep, "c", token)
	if left := d.ttl(aside); left < 2159*time.Hour || left > 2160*time.Hour { // the TTL of a customer's cart
		t.Errorf("it expires in %v", left)
	}
	d.client.PExpire(t.Context(), aside, time.Hour)
	d.goods.outOfReach(1, true)
	d.add(d.as("", token), 2, 1)
	d.read(d.as("c", token))
	if left := d.ttl(aside); left < 0 || left > time.Hour {
		t.Errorf("claimed again, it expires in %v", left)
	}
}

// Only the note in an otherwise empty cart refers to the claimed cart.
func TestMerge_ANoteLivesAsLongAsTheClaim(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*desk){
		"cart never used": func(*desk) {},
		"emptied cart":    func(d *desk) { d.add(d.as("c", ""), 1, 1); d.clear(d.as("c", "")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, token := setup(t, cart.Sum, "", "1×1")
			before(d)
			d.dieAfter(claimedStep, "c", token)
			customer, guest := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token)
			if note, aside := d.ttl(customer.CartKey()), d.ttl(guest.ClaimedKey()); note < aside-time.Minute { // it was written first
				t.Errorf("the note expires in %v, the claimed cart in %v", note, aside)
			}
			d.clear(d.as("c", ""))
			d.settle("c")
			if left := d.ttl(customer.CartKey()); left > 24*time.Hour {
				t.Errorf("an emptied cart without a note expires in %v", left)
			}
		})
	}
}

func TestMerge_AnOldNoteWithoutAClaimIsDeleted(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	d.dieAfter(intended, "c", token)
	note := func() bool { return len(d.notes("c")) > 0 }
	d.read(d.as("c", ""))
	if !note() {
		t.Error("deleted immediately, although its request may be running")
	}
	d.settle("c")
	if note() {
		t.Error("the old note still exists")
	}
	d.wantLines(d.as("c", token), "1×1")
}

// Each device brings its own guest's cart. A merge that died must not delay another
// device's.
func TestMerge_OneDeviceDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	for step := intended; step <= finished; step++ {
		d, phone, laptop := openDesk(t, cart.Sum), tokenOf("phone"), tokenOf("laptop")
		d.add(d.as("", phone), 1, 1)
		d.add(d.as("", laptop), 2, 1)
		d.dieAfter(step, "c", phone)
		got, report := d.read(d.as("c", laptop))
		if report == nil || !strings.Contains(linesOf(got), "2×1") {
			t.Errorf("phone died after step %d: the laptop got %q, %+v", step, linesOf(got), report)
		}
		d.read(d.as("c", phone))
		if got, _ := d.read(d.as("c", "")); got.Count() != 2 {
			t.Errorf("phone died after step %d: finally %q", step, linesOf(got))
		}
		d.settle("c")
		d.wantSettled()
	}
}

// The claim of a dead request is found by its note, even after another request with the
// same token has finished.
func TestMerge_EachRequestDeletesOnlyItsOwnNote(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	customer, guest := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token)
	early, late, w := newNote(), newNote(), d.holds(token)
	for _, note := range []string{early, late} {
		if err := d.redis.Intend(t.Context(), customer, guest, note, w.Bring, carttest.Limits); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.redis.Forget(t.Context(), customer, early); err != nil {
		t.Fatal(err)
	}
	if _, err := d.redis.Claim(t.Context(), customer, guest, late, w.Bring); err != nil {
		t.Fatal(err)
	}
	d.wantLines(d.as("c", ""), "1×1")
	d.wantSettled()
}

func TestMerge_ALateFinishKeepsANewerClaim(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	customer, guest := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token)
	w := d.holds(token)
	late, err := d.redis.Claim(t.Context(), customer, guest, newNote(), w.Bring)
	if err != nil {
		t.Fatal(err)
	}
	d.read(d.as("c", token))
	d.add(d.as("", token), 2, 1)
	d.dieAfter(claimedStep, "c", token)
	if err := d.redis.Finish(t.Context(), customer, guest, late); err != nil {
		t.Fatal(err)
	}
	d.wantLines(d.as("c", ""), "1×1 2×1")
}

// A failover of the guest's shard loses a claim. The same cart, which has grown, is claimed again
// before the first login goes on.
func TestMerge_AFinishKeepsALaterClaimOfTheSameCart(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	customer, guest := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token)
	before := d.client.Dump(t.Context(), guest.CartKey()).Val()
	w, first := d.holds(token), newNote()
	if err := d.redis.Intend(t.Context(), customer, guest, first, w.Bring, carttest.Limits); err != nil {
		t.Fatal(err)
	}
	claimed, err := d.redis.Claim(t.Context(), customer, guest, first, w.Bring)
	if err != nil {
		t.Fatal(err)
	}
	d.client.Del(t.Context(), guest.ClaimedKey())
	if err := d.client.Restore(t.Context(), guest.CartKey(), time.Hour, before).Err(); err != nil {
		t.Fatal(err)
	}
	d.add(d.as("", token), 2, 1)
	d.dieAfter(claimedStep, "c", token)

	bounds := map[cart.LineID]cart.Bounds{"1": {Stock: -1, Min: 1, Max: 9}}
	if _, err := d.redis.Apply(t.Context(), customer, claimed, cart.Sum, bounds, rand.Text()); err != nil {
		t.Fatal(err)
	}
	if err := d.redis.Finish(t.Context(), customer, guest, claimed); err != nil {
		t.Fatal(err)
	}
	if err := d.redis.Forget(t.Context(), customer, first); err != nil {
		t.Fatal(err)
	}
	d.wantLines(d.as("c", ""), "1×1 2×1")
	d.wantSettled()
}

func TestMerge_WaitsWhileTheCatalogIsUnreachable(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := calls[name]
			d, token := setup(t, cart.Sum, "1×1 2×1", "2×2 3×1")
			d.goods.outOfReach(3, true)
			if report := call.make(d, d.as("c", token)); report != nil {
				t.Errorf("reported %+v", report)
			}
			d.wantLines(d.as("c", token), call.before)
			d.wantSettled() // no merge was begun
			d.goods.outOfReach(3, false)
			d.wantLines(d.as("", token), "2×2 3×1")
			if _, report := d.read(d.as("c", token)); report == nil || report.Lines != 2 {
				t.Errorf("later: %+v", report)
			}
			d.wantSettled()
		})
	}
}

// The catalog becomes unreachable after the guest's cart was claimed: no line may be lost,
// whatever the customer does meanwhile.
func TestMerge_AClaimWaitsForTheCatalogToo(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := calls[name]
			d, token := setup(t, cart.Sum, "1×1 2×1", "2×2 3×1")
			d.dieAfter(claimedStep, "c", token)
			d.goods.outOfReach(3, true)
			call.make(d, d.as("c", ""))
			d.wantLines(d.as("c", ""), call.before)
			d.goods.outOfReach(3, false)
			got, _ := d.read(d.as("c", ""))
			came := map[cart.LineID]int64{}
			for _, l := range got.Lines {
				came[l.ID] = l.Quantity
			}
			if came["3"] != 1 || came["2"] < 2 {
				t.Errorf("later: %q", linesOf(got))
			}
			d.wantSettled()
		})
	}
}

// The published client retries a call without a response. A merge between the two must not
// hide that it is a retry.
func TestMerge_DoesNotMakeTheClientsOwnRetryCountTwice(t *testing.T) {
	t.Parallel()
	d, token := openDesk(t, cart.Sum), tokenOf("t")
	add := func() service.Changed {
		changed, err := d.Add(t.Context(), d.as("c", ""), redisstore.Conditions{Stamp: "stmp01"}, cart.Addition{ProductID: 1, Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	add()
	d.add(d.as("", token), 2, 1)
	d.read(d.as("c", token))
	d.pass(2 * time.Second)
	if again := add(); !again.Replayed || linesOf(again.Cart) != "1×1 2×1" {
		t.Errorf("the retry left %q", linesOf(again.Cart))
	}
}

func TestMerge_ReportsWhichLimitCutTheLine(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "1×3 2×3 3×3", "1×3 2×3 3×3")
	four, five := int64(4), int64(5)
	byStock, byMaximum := carttest.Sold(1, 100), carttest.Sold(2, 100)
	byStock.Stock, byMaximum.MaxQuantity = &four, &five
	d.goods.put(byStock)
	d.goods.put(byMaximum)
	_, report := d.read(d.as("c", token))
	want := []cart.Adjustment{
		{Line: "1", Requested: 6, Kept: 4, Code: problem.InsufficientStock},
		{Line: "2", Requested: 6, Kept: 5, Code: cart.AboveMaxQuantity},
	}
	if report == nil || report.Lines != 3 || !slices.Equal(report.Adjusted, want) {
		t.Errorf("report %+v", report)
	}
}

// An instance whose clock is ahead takes a running request's note for an old one. Redis
// decides by its own clock.
func TestMerge_AFastClockDeletesNoNoteOfARunningRequest(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "1×1", "1×1")
	customer, guest, w, own := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token), d.holds(token), newNote()
	if err := d.redis.Intend(t.Context(), customer, guest, own, w.Bring, carttest.Limits); err != nil {
		t.Fatal(err)
	}
	d.forward.Add(int64(2 * redisstore.NoteGrace))
	d.read(d.as("c", "")) // by that instance, while the request stalls
	if _, err := d.redis.Claim(t.Context(), customer, guest, own, w.Bring); err != nil {
		t.Fatal(err)
	}
	d.wantLines(d.as("c", ""), "1×2") // the request died, and the next one finds its claim
	d.wantSettled()
}

// A request is delayed between its note and its claim, and the guest adds meanwhile.
func TestMerge_ACartThatOutgrewItsReservationIsNotClaimed(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "1×1", "1×1")
	customer, guest, w, own := redisstore.CustomerRef(d.store.ID, "c"), redisstore.GuestRef(d.store.ID, token), d.holds(token), newNote()
	if err := d.redis.Intend(t.Context(), customer, guest, own, w.Bring, carttest.Limits); err != nil {
		t.Fatal(err)
	}
	d.fill(d.as("", token), "2×1 3×1")
	_, err := d.redis.Claim(t.Context(), customer, guest, own, w.Bring)
	var grown *redisstore.GrownError
	if !errors.As(err, &grown) || grown.Bring.Lines != 3 || grown.Bring.CartID != w.Bring.CartID {
		t.Errorf("got %v", err)
	}
	d.wantLines(d.as("", token), "1×1 2×1 3×1")
	d.wantLines(d.as("c", token), "1×2 2×1 3×1")
}

func TestMerge_ALineThatCannotBeBoughtIsCutToTheServicesLimit(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*cart.Product){
		"inactive":     func(p *cart.Product) { p.Active = false },
		"out of stock": func(p *cart.Product) { p.Stock = new(int64) },
	} {
		d, token := setup(t, cart.Sum, "1×600", "1×600")
		stopped := carttest.Sold(1, 100)
		stop(stopped)
		d.goods.put(stopped)
		_, report := d.read(d.as("c", token))
		want := []cart.Adjustment{{Line: "1", Requested: 1200, Kept: 999, Code: cart.AboveMaxQuantity}}
		if report == nil || !slices.Equal(report.Adjusted, want) {
			t.Errorf("%s: report %+v", name, report)
		}
		d.wantLines(d.as("c", ""), "1×999")
	}
}

// A request died after its note, and another one of the same customer has merged the cart. The
// first note goes with the next request once it is old.
func TestMerge_AnOldNoteGoesWhenAnotherMergeHasSucceeded(t *testing.T) {
	t.Parallel()
	d, token := setup(t, cart.Sum, "", "1×1")
	d.dieAfter(intended, "c", token)
	d.dieAfter(claimedStep, "c", token)
	d.pass(redisstore.NoteGrace + time.Minute)
	d.wantLines(d.as("c", ""), "1×1")
	if left := d.notes("c"); len(left) != 0 {
		t.Errorf("notes are left: %q", left)
	}
}
