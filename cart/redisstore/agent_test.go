package redisstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/auth/sealed"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/handover"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/ucp/agent"
	"commerce/deploy/assert"
)

func (d *desk) agent() agent.Agent {
	return agent.Agent{Store: d.store, Client: "192.0.2.1", Profile: "https://platform.example/profile"}
}

func (d *desk) opens(id string) *agent.Visit {
	d.t.Helper()
	v, ok := d.agents.Visit(d.agent(), id)
	assert.Require(d.t, ok, "%q is no ID", id)
	return v
}

// shownAs is a cart as the agent with an ID sees it.
func shownAs(id string, c cart.Cart) agent.Cart {
	return agent.Cart{Priced: price.Priced{Cart: c}, ID: id, Since: c.Moment()}
}

// shownID returns a line's ID as the agent of a desk sees it.
func shownID(c agent.Cart, line cart.LineID) string {
	return agent.New(&service.Carts{Config: service.Config{Keys: deskKeys}}).ShownIDs(c)(line)
}

// shown reads the cart of an ID as its agent.
func (d *desk) shown(id string) agent.Cart {
	d.t.Helper()
	return assert.Must(d.agents.Read(d.t.Context(), d.opens(id)))(d.t)
}

// wants returns a replacement by "product×quantity …". With " ~", an element has the ID that shown gave it.
func wants(lines string, shown ...agent.Cart) (r agent.Replacement) {
	for _, line := range strings.Fields(lines) {
		var e agent.Element
		_, _ = fmt.Sscanf(line, "%d×%d", &e.Product, &e.Quantity)
		for _, c := range shown {
			id := cart.NewLineID(e.Product, 0, nil)
			if !c.Cart.Has(id) {
				id = ""
			}
			e.ID = shownID(c, id)
		}
		r.Elements = append(r.Elements, e)
	}
	return r
}

func (d *desk) agentCreates(lines string) agent.Cart {
	d.t.Helper()
	return assert.Must(d.agents.Create(d.t.Context(), d.agents.NewVisit(d.agent(), ""), service.Conditions{}, wants(lines)))(d.t)
}

// by begins a call of the shopper who has the cart of an ID on another device.
func (d *desk) by(id string) *service.Visit { return d.opens(id).Visit }

// A replacement or cancellation changes nothing that the agent has not seen.
func TestAgent_UndoesNothingUnseen(t *testing.T) {
	t.Parallel()
	const want = "1×1 3×1"
	none := func(agent.Cart, agent.Cart) agent.Replacement { return wants(want) }
	then := func(then, _ agent.Cart) agent.Replacement { return wants(want, then) }
	now := func(_, now agent.Cart) agent.Replacement { return wants(want, now) }
	both := func(then, now agent.Cart) agent.Replacement {
		r := wants(want, now)
		r.Elements[0].ID = shownID(then, "1")
		return r
	}
	nobody := func(*desk, string) {}
	shopper := func(d *desk, id string) { d.add(d.by(id), 2, 1) }
	for name, row := range map[string]struct {
		meanwhile func(*desk, string)
		send      func(then, now agent.Cart) agent.Replacement
		refused   bool
	}{
		"nobody, without IDs": {nobody, none, false},
		"nobody, as shown":    {nobody, then, false},
		"the agent, as shown before": {func(d *desk, id string) {
			assert.Must(d.agents.Replace(t.Context(), d.opens(id), service.Conditions{}, wants("5×1")))(t)
		}, then, false},
		"a shopper and then the agent, as shown before": {func(d *desk, id string) {
			shopper(d, id)
			c, _ := d.read(d.by(id))
			assert.Must(d.agents.Replace(t.Context(), d.opens(id), service.Conditions{}, wants("5×1", shownAs(id, c))))(t)
		}, then, true},
		"a shopper, without IDs":                         {shopper, none, true},
		"a shopper, as shown before":                     {shopper, then, true},
		"a shopper, as shown since":                      {shopper, now, false},
		"a shopper, one ID from before":                  {shopper, both, true},
		"a shopper who empties the cart":                 {func(d *desk, id string) { d.clear(d.by(id)) }, none, true},
		"a shopper who empties the cart, as shown since": {func(d *desk, id string) { d.clear(d.by(id)) }, now, false},
		"a shopper who changes nothing":                  {func(d *desk, id string) { d.read(d.by(id)) }, none, false},
		"a shopper, and then the agent": {func(d *desk, id string) {
			shopper(d, id)
			c, _ := d.read(d.by(id))
			assert.Must(d.agents.Replace(t.Context(), d.opens(id), service.Conditions{}, wants("5×1", shownAs(id, c))))(t)
		}, none, false},
		"a shopper, and then a refused agent": {func(d *desk, id string) {
			shopper(d, id)
			_, err := d.agents.Replace(t.Context(), d.opens(id), service.Conditions{}, wants("5×1"))
			assert.ErrorIs(t, err, agent.ErrChangedUnseen, "the refused agent")
		}, none, true},
		"a shopper, and then the agent who finds what it asks for": {func(d *desk, id string) {
			shopper(d, id)
			c, _ := d.read(d.by(id))
			assert.Must(d.agents.Replace(t.Context(), d.opens(id), service.Conditions{}, wants("1×2 2×1", shownAs(id, c))))(t)
		}, none, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDesk(t, "", "")
			for _, cancels := range []bool{false, true} {
				made := d.agentCreates("1×2")
				row.meanwhile(d, made.ID)
				before, _ := d.read(d.by(made.ID))
				r := row.send(made, shownAs(made.ID, before))
				var got agent.Cart
				var err error
				after := want
				if cancels {
					got, err = d.agents.Cancel(t.Context(), d.opens(made.ID), service.Conditions{}, r.Elements...)
					after = ""
				} else {
					got, err = d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, r)
				}
				if row.refused {
					assert.ErrorIs(t, err, agent.ErrChangedUnseen, "cancels %v", cancels)
					assert.Equal(t, got.Cart.Tag(), before.Tag(), "the cart of the refusal")
					after = linesOf(before)
				} else {
					assert.NoError(t, err)
				}
				d.wantLines(d.by(made.ID), after)
			}
		})
	}
}

// The IDs of a cart's lines go on naming them under the previous key.
func TestAgent_KeepsLinesByIDsUnderThePreviousKey(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	d.goods.products[5] = carttest.Account()
	made := d.agentCreates("1×1")
	for _, who := range []string{"a", "b"} {
		d.change(d.by(made.ID), func() (service.Changed, error) {
			return d.Add(t.Context(), d.by(made.ID), redisstore.Conditions{}, cart.Addition{ProductID: 5, PlanID: new(int64(51)), Quantity: 1, Fields: map[string]string{"email": who}})
		})
	}
	c, _ := d.read(d.by(made.ID))
	d.Keys = assert.Must(sealed.New(strings.Repeat("n", 32), strings.Repeat("k", 32)))(t)
	second := agent.Replacement{Elements: []agent.Element{{ID: shownID(shownAs(made.ID, c), c.Lines[2].ID), Product: 5, Plan: 51, Quantity: 2}}}
	assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, second))(t)
	d.wantLines(d.by(made.ID), string(c.Lines[2].ID)+"×2")
}

// If-Match says what an agent has seen, too. Another version is a mismatch, and not merely unseen.
func TestAgent_IfMatchNamesWhatItHasSeen(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	made := d.agentCreates("1×2")
	d.add(d.by(made.ID), 2, 1)
	changed, _ := d.read(d.by(made.ID))
	at := func(c cart.Cart) service.Conditions { return service.Conditions{IfMatch: " " + c.Tag() + " "} }
	for name, row := range map[string]struct {
		on      service.Conditions
		r       agent.Replacement
		refused func(error) bool
	}{
		"an older version":          {at(made.Cart), wants("3×1"), func(err error) bool { return isProblem(err, problem.VersionMismatch) }},
		"an older version, new IDs": {at(made.Cart), wants("3×1", shownAs(made.ID, changed)), func(err error) bool { return isProblem(err, problem.VersionMismatch) }},
		"this version, older IDs":   {at(changed), wants("3×1", made), func(err error) bool { return errors.Is(err, agent.ErrChangedUnseen) }},
		"any version":               {service.Conditions{IfMatch: "*"}, wants("3×1"), func(err error) bool { return errors.Is(err, agent.ErrChangedUnseen) }},
	} {
		_, err := d.agents.Replace(t.Context(), d.opens(made.ID), row.on, row.r)
		assert.That(t, row.refused(err), "%s: %v", name, err)
		d.wantLines(d.by(made.ID), "1×2 2×1")
	}
	assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), at(changed), wants("3×1")))(t)
	d.wantLines(d.by(made.ID), "3×1")
}

func TestAgent_AppliesWhatCanBeBoughtAndNamesTheRest(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	d.goods.products[2].Stock = new(int64(3))
	d.goods.products[5] = carttest.Account()
	r := wants("5×1 2×5 4×1 9×1")
	r.Codes = []agent.Code{{Text: "TEN"}}
	made := assert.Must(d.agents.Create(t.Context(), d.agents.NewVisit(d.agent(), ""), service.Conditions{}, r))(t)
	assert.That(t, made.Created && linesOf(made.Cart) == "4×1" && slices.Equal(made.Cart.Coupons, []string{"TEN"}), "%s with %q", linesOf(made.Cart), made.Cart.Coupons)
	assert.Equal(t, faultsOf(made), "0 plan_unavailable, 1 insufficient_stock, 3 product_not_found", "faults")
	r = wants("2×3 4×1000 1×1", made)
	r.Codes = []agent.Code{{Text: "OLD"}}
	replaced := assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, r))(t)
	assert.Equal(t, linesOf(replaced.Cart)+" "+strings.Join(replaced.Cart.Coupons, " "), "4×1 2×3 1×1 ", "the cart, whose coupon a refused one has replaced")
	assert.Equal(t, faultsOf(replaced), "1 quantity_out_of_range, coupon coupon_invalid", "faults")
	r = wants("1×1")
	r.Codes = []agent.Code{}
	replaced = assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, r))(t)
	assert.Equal(t, linesOf(replaced.Cart)+strings.Join(replaced.Cart.Coupons, " "), "1×1", "without the coupon")
	r = wants("9×1")
	r.Codes = []agent.Code{{Text: "TEN"}}
	before := len(d.keys())
	nothing := assert.Must(d.agents.Create(t.Context(), d.agents.NewVisit(d.agent(), ""), service.Conditions{}, r))(t)
	assert.That(t, !nothing.Created && len(d.keys()) == before, "a cart of nothing is stored: %+v, %v", nothing, d.keys())
	assert.Equal(t, faultsOf(nothing), "0 product_not_found, coupon cart_empty", "faults")
}

func faultsOf(c agent.Cart) string {
	parts := make([]string, len(c.Faults))
	for i, f := range c.Faults {
		parts[i] = fmt.Sprintf("%d %s", f.Element, f.Problem.Code)
		if f.Code >= 0 {
			parts[i] = fmt.Sprintf("coupon %s", f.Problem.Code)
		}
	}
	return strings.Join(parts, ", ")
}

func TestAgent_OtherIDsOpenNothing(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	id := d.agentCreates("1×1").ID
	madeUp := id[:4] + strings.Repeat("A", 26)
	other := d.agent()
	other.Store = &store.Store{ID: newStoreID(), Currency: "SAR"}
	elsewhere, _ := d.agents.Visit(other, id)
	for name, v := range map[string]*agent.Visit{"made up": d.opens(madeUp), "another store's": elsewhere} {
		_, readErr := d.agents.Read(t.Context(), v)
		_, replaceErr := d.agents.Replace(t.Context(), v, service.Conditions{}, wants("1×1"))
		_, cancelErr := d.agents.Cancel(t.Context(), v, service.Conditions{Key: "k", Fingerprint: "f", IfMatch: "*"})
		for _, err := range []error{readErr, replaceErr, cancelErr} {
			assert.That(t, isProblem(err, problem.NotFound), "%s: %v", name, err)
		}
	}
	assert.That(t, !strings.Contains(fmt.Sprint(d.keys(), d.client.HGetAll(t.Context(), d.keys()[0]).Val()), id[4:]), "Redis knows the ID")
}

// takesOver redeems a code of an agent's cart, and keeps the agent or not.
func (d *desk) takesOver(v *service.Visit, id string, keeps bool) *service.Visit {
	d.t.Helper()
	agents := d.opens(id)
	held, err := d.agents.Read(d.t.Context(), agents)
	assert.NoError(d.t, err)
	return d.takes(v, d.agents.HandoverOf(agents, held.Cart).Code, keeps)
}

func (d *desk) takes(v *service.Visit, code string, keeps bool) *service.Visit {
	d.t.Helper()
	_, err := d.handovers.Redeem(d.t.Context(), v, handover.Redemption{Code: code, Key: redeemKey(rand.Text()), KeepAgent: keeps})
	assert.NoError(d.t, err)
	return v
}

func (d *desk) wantMoved(id, when string) {
	d.t.Helper()
	read := d.shown(id)
	assert.That(d.t, read.Moved && len(read.Lines) == 0, "%s, the agent finds %s, moved %v", when, linesOf(read.Cart), read.Moved)
}

// Once the shopper has taken the cart over, its agent sees and changes nothing of it, and can begin another one.
func TestAgent_HandsItsCartOver(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "4×1", "")
	for name, taker := range map[string]*service.Visit{"a fresh token": d.as("", ""), "a customer": d.as("c", "")} {
		made := d.agentCreates("1×2")
		shopper := d.takesOver(taker, made.ID, name == "a customer") // who has a cart keeps no agent
		d.add(shopper, 2, 1)
		before, _ := d.read(shopper)
		d.wantMoved(made.ID, "after a hand-over to "+name)
		_, err := d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1", made))
		assert.ErrorIs(t, err, agent.ErrChangedUnseen, "%s: with IDs from before", name)
		shown := d.shown(made.ID)
		for range 2 {
			next := assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1", shown)))(t)
			assert.That(t, linesOf(next.Cart) == "3×1" && !next.Moved, "%s: another cart of %s, moved %v", name, linesOf(next.Cart), next.Moved)
		}
		after, _ := d.read(shopper)
		assert.Equal(t, after.Tag(), before.Tag(), "%s: the shopper's cart", name)
		d.takesOver(shopper, made.ID, false)
		d.wantMoved(made.ID, "after a second one to "+name)
		_, err = d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1", shown))
		assert.ErrorIs(t, err, agent.ErrChangedUnseen, "%s: with the ID of the first one", name)
		assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1", d.shown(made.ID))))(t)
		assert.Must(d.agents.Cancel(t.Context(), d.opens(made.ID), service.Conditions{}))(t)
		d.client.Del(t.Context(), d.by(made.ID).Ref().CartKey()) // what remains of it is kept for a shorter time than the mark
		_, err = d.agents.Read(t.Context(), d.opens(made.ID))
		assert.That(t, isProblem(err, problem.NotFound), "%s: after the agent has canceled: %v", name, err)
	}
}

// An agent that the shopper keeps follows to the fresh token, as far as that has a cart.
func TestAgent_FollowsAShopperWhoKeepsIt(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "4×1", "")
	made := d.agentCreates("1×2")
	shopper := d.takesOver(d.as("", ""), made.ID, true)
	d.add(shopper, 2, 1)
	v := d.opens(made.ID)
	read := assert.Must(d.agents.Read(t.Context(), v))(t)
	assert.Equal(t, linesOf(read.Cart), "1×2 2×1", "the agent finds")
	offer := d.agents.HandoverOf(v, read.Cart)
	assert.That(t, offer.Code == "" && offer.URL == d.store.CartURL, "the agent gets a code that shows it the shopper's texts")
	_, err := d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1"))
	assert.ErrorIs(t, err, agent.ErrChangedUnseen, "without IDs")
	_, err = d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1", made))
	assert.ErrorIs(t, err, agent.ErrChangedUnseen, "with IDs from before")
	assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1", read)))(t)
	d.wantLines(shopper, "3×1")

	d.add(shopper, 2, 1)
	d.read(d.as("c", shopper.Token)) // logs in
	d.wantLines(d.as("c", ""), "4×1 3×1 2×1")
	d.wantMoved(made.ID, "after a login")
	assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("5×1", d.shown(made.ID))))(t)
	d.wantLines(d.as("c", shopper.Token), "4×1 3×1 2×1") // not by the next login

	for how, leaves := range map[string]func(*service.Visit){
		"a login": func(shopper *service.Visit) { d.read(d.as("d", shopper.Token)) },
		"a hand-over": func(shopper *service.Visit) {
			d.takes(d.as("", ""), assert.Must(d.handovers.Offer(t.Context(), shopper))(t).Code, false)
		},
	} {
		made = d.agentCreates("1×1")
		shopper = d.takesOver(d.as("", ""), made.ID, true)
		leaves(d.as("", shopper.Token))
		next := d.as("", shopper.Token)
		d.add(next, 2, 1)
		d.wantMoved(made.ID, "after "+how+", when the shopper has begun another cart")
		assert.Must(d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("5×1", d.shown(made.ID))))(t)
		d.wantLines(next, "2×1")
	}

	made = d.agentCreates("1×1")
	shopper = d.takesOver(d.as("", ""), made.ID, true)
	read = d.shown(made.ID)
	canceled := assert.Must(d.agents.Cancel(t.Context(), d.opens(made.ID), service.Conditions{}, agent.Element{ID: shownID(read, "1")}))(t)
	assert.Equal(t, linesOf(canceled.Cart), "1×1", "as it was")
	d.add(shopper, 2, 1)
	_, err = d.agents.Read(t.Context(), d.opens(made.ID))
	assert.That(t, isProblem(err, problem.NotFound), "after it has canceled: %v", err)
}

// The catalog fails when a hand-over has claimed the cart. Until the lines have arrived, the agent that the shopper keeps
// begins no other cart, from which it would not return.
func TestAgent_WaitsForTheCartThatItFollows(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	made := d.agentCreates("1×2")
	code := d.handovers.OfferOf(d.by(made.ID), made.Cart, true).Code
	d.redis.Client.AddHook(&then{
		follows: func(cmd redis.Cmder, _ error) bool { return claims(cmd) },
		run:     func() { d.goods.out.Store(1) },
	})
	r := handover.Redemption{Code: code, Key: redeemKey("k"), KeepAgent: true}
	_, err := d.handovers.Redeem(t.Context(), d.as("", ""), r)
	assert.That(t, problemOf(err, problem.Unavailable) != nil, "redeemed without the catalog: %v", err)
	_, err = d.agents.Replace(t.Context(), d.opens(made.ID), service.Conditions{}, wants("3×1"))
	assert.That(t, problemOf(err, problem.Unavailable) != nil, "the agent has replaced another cart: %v", err)
	d.goods.out.Store(0)
	assert.Must(d.handovers.Redeem(t.Context(), d.as("", ""), r))(t)
	read := d.shown(made.ID)
	assert.Equal(t, linesOf(read.Cart), "1×2", "the agent finds")
}

// While a shopper adds to the same line, a replacement by what the agent has seen comes first, or is refused.
func TestAgent_AReplacementLosesNoChangeThatComesDuringIt(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "", "")
	id := d.agentCreates("1×1").ID
	refused := 0
	for round := range int64(150) {
		before, _ := d.read(d.by(id))
		r := wants(fmt.Sprintf("1×%d", 1+round%5), shownAs(id, before))
		var shopper sync.WaitGroup
		shopper.Go(func() { d.add(d.by(id), 1, 1) })
		_, err := d.agents.Replace(t.Context(), d.opens(id), service.Conditions{}, r)
		shopper.Wait()
		after, _ := d.read(d.by(id))
		want := r.Elements[0].Quantity + 1
		if err != nil {
			assert.ErrorIs(t, err, agent.ErrChangedUnseen, "round %d", round)
			want = before.Lines[0].Quantity + 1
			refused++
		}
		assert.Equal(t, after.Lines[0].Quantity, want, "round %d, refused %v", round, err)
	}
	t.Logf("%d were refused", refused)
}
