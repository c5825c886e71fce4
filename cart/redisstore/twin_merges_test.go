package redisstore_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"commerce/cart"
	"commerce/cart/redisstore"
)

// The rules of merges. Their steps come in any order, from any request, and again: a merge
// dies anywhere, and what a failover lost is done twice.
func TestTwin_Merges(t *testing.T) {
	t.Parallel()
	bench := openBench(t)
	rapid.Check(t, func(r *rapid.T) {
		store := newStoreID()
		m := &merging{
			customers: []redisstore.Ref{redisstore.CustomerRef(store, "c1"), redisstore.CustomerRef(store, "c2")},
			guests:    []redisstore.Ref{redisstore.GuestRef(store, tokenOf("t1")), redisstore.GuestRef(store, tokenOf("t2"))},
			aside:     map[redisstore.Ref]*aside{},
			offers:    map[redisstore.Ref]map[string]cart.Offers{},
			came:      map[redisstore.Ref]map[string]*came{},
		}
		m.twins = bench.begin(t.Context(), r, slices.Concat(m.customers, m.guests)...)
		for ref := range m.carts {
			m.offers[ref], m.came[ref] = map[string]cart.Offers{}, map[string]*came{}
		}
		m.remembersMuch(r, m.customers[0], 1)
		m.remembersMuch(r, m.guests[0], 18)
		r.Repeat(map[string]func(*rapid.T){
			"customer": func(t *rapid.T) { m.fill(t, drawRef(t, m.customers)) },
			"guest":    func(t *rapid.T) { m.fill(t, drawRef(t, m.guests)) },
			"reserve":  m.reserveFor,
			"claim":    m.claim,
			"apply":    m.apply,
			"finish":   m.finish,
			"forget":   func(t *rapid.T) { m.forget(t, m.drawOwner(t, redisstore.Ref{}), drawNote(t)) },
			"pass":     m.pass,
			"login":    m.login,
			"undo":     m.undo,
		})
	})
}

// merging are the twins of customers and guests, and what lies between them.
type merging struct {
	*twins
	customers, guests []redisstore.Ref
	aside             map[redisstore.Ref]*aside // by the guest's place
	offers            map[redisstore.Ref]map[string]cart.Offers
	claims            []claim
	came              map[redisstore.Ref]map[string]*came // into customers' carts, by the merge's name
}

// came is what a merge has brought, and the adjusted lines if it is undone.
type came struct {
	cart.CameIn
	undone   bool
	adjusted []cart.Adjustment
}

type aside struct {
	owner redisstore.Ref
	note  string
	Record
}

// claim is what one request claimed. It does not grow older with what lies in Redis.
type claim struct {
	owner, guest redisstore.Ref
	claimed      redisstore.Claimed
	memory       Memory
	passed       time.Duration
}

// drawOwner draws who is to get a guest's cart: a customer, or by a hand-over another guest.
func (m *merging) drawOwner(t *rapid.T, guest redisstore.Ref) redisstore.Ref {
	return drawRef(t, slices.DeleteFunc(slices.Concat(m.customers, m.guests), func(ref redisstore.Ref) bool { return ref == guest }))
}

func drawRef(t *rapid.T, refs []redisstore.Ref) redisstore.Ref {
	return refs[rapid.IntRange(0, len(refs)-1).Draw(t, "whose")]
}

func (m *merging) fill(t *rapid.T, ref redisstore.Ref) {
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		m.change(t, ref, drawConditions(t), drawRule(t))
	}
}

func (m *merging) reserveFor(t *rapid.T) {
	guest := drawRef(t, m.guests)
	owner := m.drawOwner(t, guest)
	if m.carts[guest].Cart.ID == "" {
		return // nothing comes
	}
	limits := cart.Limits{Lines: rapid.Int64Range(1, 6).Draw(t, "limit of lines"), CartText: rapid.Int64Range(2, 40).Draw(t, "limit of text")}
	m.reserve(t, owner, guest, drawNote(t), m.carts[guest].Cart.RoomNeeded(), limits)
}

type claimed struct {
	Word  string
	Note  string
	Cart  cart.Cart
	Owner string
	Grown cart.Reservation
}

func (m *merging) claim(t *rapid.T) {
	guest := drawRef(t, m.guests)
	owner := m.drawOwner(t, guest)
	note := rapid.SampledFrom([]string{"", "m1", "m2", "m3", "m4"}).Draw(t, "note")
	b, reserved := m.carts[owner].Merges[note]
	if !reserved || rapid.IntRange(0, 3).Draw(t, "as it is") == 0 {
		b = m.carts[guest].Cart.RoomNeeded()
		b.Lines -= rapid.Int64Range(0, 1).Draw(t, "lines more")
		b.Text -= rapid.Int64Range(0, 1).Draw(t, "text more")
		b.CartID = rapid.SampledFrom([]string{b.CartID, b.CartID, "cart-other"}).Draw(t, "cart")
	}
	m.claimFor(t, owner, guest, note, b)
}

func (m *merging) claimFor(t *rapid.T, owner, guest redisstore.Ref, note string, b cart.Reservation) {
	var got redisstore.Claimed
	var taken *aside
	m.step(guest, func() any {
		var err error
		got, err = m.store.Claim(m.ctx, owner, guest, note, b, "")
		if other, ok := errors.AsType[*redisstore.OtherOwnerError](err); ok {
			return claimed{Word: "other", Owner: other.Owner.String()}
		}
		if grown, ok := errors.AsType[*redisstore.GrownError](err); ok {
			return claimed{Word: "grown", Grown: grown.Needs}
		}
		switch {
		case errors.Is(err, redisstore.ErrNothingToMerge):
			return claimed{Word: "nothing"}
		case errors.Is(err, redisstore.ErrMerging):
			return claimed{Word: "merging"}
		case err != nil:
			t.Fatal(err)
		}
		return claimed{Word: map[bool]string{true: "again", false: "claimed"}[got.Again], Note: got.Note, Cart: got.Cart}
	}, func(r Record, _ time.Time) becomes {
		taken = nil
		switch own := m.aside[guest]; {
		case own != nil && own.owner != owner:
			return becomes{r, claimed{Word: "other", Owner: own.owner.String()}, false}
		case own != nil:
			taken = own
			return becomes{r, claimed{Word: "again", Note: own.note, Cart: own.Cart}, false}
		case note == "" || r.Cart.ID == "":
			return becomes{r, claimed{Word: "nothing"}, false}
		case r.Merging():
			return becomes{r, claimed{Word: "merging"}, false}
		case !Covers(b, r.Cart):
			return becomes{r, claimed{Word: "grown", Grown: r.Cart.RoomNeeded()}, false}
		}
		taken = &aside{owner, note, r}
		return becomes{r.Claimed(), claimed{Word: "claimed", Note: note, Cart: r.Cart}, true}
	})
	if taken == nil {
		return
	}
	m.aside[guest] = taken
	m.claims = append(m.claims, claim{
		owner: owner, guest: guest, claimed: got, passed: m.passed,
		memory: Memory{Stamps: taken.Memory.Stamps, Keys: m.keysOf(guest, taken)},
	})
}

// keysOf returns the keys that a guest's token had when its cart was claimed, and still has.
func (m *merging) keysOf(guest redisstore.Ref, then *aside) map[string]cart.KeyUse {
	keys := maps.Clone(m.carts[guest].Memory.Keys)
	maps.DeleteFunc(keys, func(key string, use cart.KeyUse) bool { return !cmp.Equal(use, then.Memory.Keys[key]) })
	return keys
}

func (m *merging) apply(t *rapid.T) {
	if len(m.claims) == 0 {
		return
	}
	c := m.claims[rapid.IntRange(0, len(m.claims)-1).Draw(t, "claim")]
	if rapid.IntRange(0, 3).Draw(t, "as a lost claim") == 0 {
		c.claimed.Cart = grown(t, c.claimed.Cart)
	}
	if rapid.IntRange(0, 3).Draw(t, "emptied since") == 0 {
		m.change(t, c.owner, redisstore.Conditions{}, cart.Clear())
	}
	m.applyClaim(t, c)
}

var allRoom = cart.Limits{Lines: 99, LineText: 99, CartText: 99}

// grown is what a guest's cart may have become after a failover lost its claim.
func grown(t *rapid.T, c cart.Cart) cart.Cart {
	id := c.ID
	c.Metadata = c.Metadata.With(drawMetadata(t))
	for range rapid.IntRange(1, 3).Draw(t, "growth") {
		l := drawNewLine(t)
		l.Bounds = cart.Bounds{Stock: -1, Min: 1, Max: 99}
		if made := cart.Add(l)(&cart.Cell{Cart: c}, allRoom, time.Now()); !made.Refused() {
			c = made.Cart
		}
	}
	c.ID, c.Coupon = id, rapid.SampledFrom([]string{c.Coupon, "", "TEN"}).Draw(t, "coupon")
	return c
}

func (m *merging) applyClaim(t *rapid.T, c claim) {
	by := rapid.SampledFrom([]cart.Strategy{cart.Sum, cart.Sum, cart.Max, cart.KeepGuest, cart.KeepCustomer}).Draw(t, "strategy")
	bounds := map[cart.LineID]cart.Bounds{}
	for _, l := range c.claimed.Cart.Lines {
		bounds[l.ID] = drawBounds(t)
	}
	behind := time.Duration(rapid.SampledFrom([]int{0, 0, -1500, 1500, -280_000, 280_000, -86_000_000}).Draw(t, "behind")) * time.Millisecond
	newID, before := m.newID(), m.offers[c.owner][c.claimed.Cart.ID]
	name, held := strings.TrimPrefix(c.claimed.Note, "m"), cart.Cart{}
	var after cart.Offers
	m.step(c.owner, func() any {
		from, err := m.store.ClaimedBehind(m.ctx, c.owner, c.claimed, behind)
		if err != nil {
			t.Fatal(err)
		}
		report, err := m.store.Apply(m.ctx, c.owner, from, by, bounds, newID)
		if err != nil {
			t.Fatal(err)
		}
		if report != nil {
			report.At = m.at(report.At.UnixMilli())
		}
		return report
	}, func(r Record, now time.Time) becomes {
		var report *cart.MergeReport
		guest := Record{Cart: c.claimed.Cart, Memory: c.memory}
		held = r.Cart
		r, after, report = r.Merge(guest, by, bounds, before, name, newID, behind+m.passed-c.passed, now)
		return becomes{r, report, true}
	})
	m.offers[c.owner][c.claimed.Cart.ID] = after
	if now := m.carts[c.owner].Cart; now.Version != held.Version && !c.owner.IsGuest() && m.came[c.owner][name] == nil {
		m.came[c.owner][name] = &came{CameIn: cameIn(held, now, c.claimed.Cart)}
	}
}

// undo undoes a merge, perhaps again, and perhaps one that never was.
func (m *merging) undo(t *rapid.T) {
	owner, name := drawRef(t, m.customers), strings.TrimPrefix(drawNote(t), "m")
	known := m.came[owner][name]
	m.step(owner, func() any {
		found, err := m.store.FindMerge(m.ctx, owner, name)
		if (known == nil) != errors.Is(err, redisstore.ErrNoMerge) {
			t.Fatalf("merge %s is known: %t, and Redis says %v", name, known != nil, err)
		} else if err != nil {
			return []cart.Adjustment(nil)
		}
		by, adjusted, err := m.store.Undo(m.ctx, owner, name, "by", found, found.Cart.UndoMerge(found.Came))
		if err != nil || by != "by" {
			t.Fatal(by, err)
		}
		return adjusted
	}, func(r Record, _ time.Time) becomes {
		if known == nil || known.undone {
			return becomes{r, append([]cart.Adjustment(nil), known.told()...), false}
		}
		u := r.Cart.UndoMerge(known.CameIn)
		renews := u.Customer.Version != r.Cart.Version
		r.Cart, known.adjusted = u.Customer, u.Adjusted
		return becomes{r, u.Adjusted, renews}
	})
	if known != nil {
		known.undone = true
	}
}

func (c *came) told() []cart.Adjustment {
	if c == nil {
		return nil
	}
	return c.adjusted
}

func (m *merging) finish(t *rapid.T) {
	if len(m.claims) > 0 {
		m.finishClaim(t, m.claims[rapid.IntRange(0, len(m.claims)-1).Draw(t, "claim")])
	}
}

// finishClaim drops what was set aside, if it is what was claimed. Later claims show it.
func (m *merging) finishClaim(t *rapid.T, c claim) {
	if err := m.store.Finish(m.ctx, c.owner, c.guest, c.claimed); err != nil {
		t.Fatal(err)
	}
	if own := m.aside[c.guest]; own != nil && own.owner == c.owner && own.note == c.claimed.Note && own.Cart.ID == c.claimed.Cart.ID {
		delete(m.aside, c.guest)
	}
}

// login drives a merge from its beginning, often to its end.
func (m *merging) login(t *rapid.T) {
	guest, note := drawRef(t, m.guests), drawNote(t)
	owner := m.drawOwner(t, guest)
	m.fill(t, guest)
	m.change(t, guest, redisstore.Conditions{}, cart.SetCoupon(rapid.SampledFrom([]string{"", "TEN", "FIVE"}).Draw(t, "coupon")))
	m.change(t, guest, redisstore.Conditions{}, cart.SetMetadata(drawMetadata(t)))
	if m.carts[guest].Cart.ID == "" {
		return
	}
	m.reserve(t, owner, guest, note, m.carts[guest].Cart.RoomNeeded(), allRoom)
	claims := len(m.claims)
	m.claimFor(t, owner, guest, note, m.carts[guest].Cart.RoomNeeded())
	if len(m.claims) == claims {
		return
	}
	m.applyClaim(t, m.claims[claims])
	if rapid.Bool().Draw(t, "finishes") {
		m.finishClaim(t, m.claims[claims])
		m.forget(t, owner, note)
	}
}
