package torture

import (
	"fmt"
	"math/rand/v2"
)

// The model of a cart with at most one line: a few rules of docs/cart.md, written independently of package cart.
// Simulations have the others.

type cartState struct{ version, quantity int64 }

func (s cartState) String() string { return fmt.Sprintf("%d×%d", s.version, s.quantity) }

type cartCall struct {
	verb     verb
	quantity int64 // to add or to set
	ifMatch  int64 // version; noCondition for none
}

type verb string

const (
	verbRead verb = "read"
	verbAdd  verb = "add"
	verbSet  verb = "set"
)

const (
	maxQuantity = 999
	noCondition = -1
)

var readCall = cartCall{verb: verbRead, ifMatch: noCondition}

func (c cartCall) String() string { return fmt.Sprintf("%s %d if %d", c.verb, c.quantity, c.ifMatch) }

// apply returns the cart after the call, or its refusal.
func (c cartCall) apply(s cartState) (cartState, string) {
	switch {
	case c.ifMatch != noCondition && c.ifMatch != s.version:
		return s, "version_mismatch"
	case c.verb == verbAdd && s.quantity+c.quantity > maxQuantity:
		return s, "quantity_out_of_range"
	case c.verb == verbAdd:
		return cartState{s.version + 1, s.quantity + c.quantity}, ""
	case c.verb == verbSet && s.quantity == 0:
		return s, "item_not_found"
	case c.verb == verbSet && c.quantity != s.quantity: // 0 removes the line
		return cartState{s.version + 1, c.quantity}, ""
	}
	return s, ""
}

func plainLine(i int) string { return fmt.Sprint(firstProduct + i) }

// drawCall returns a random call. version is one that the client has seen.
func drawCall(r *rand.Rand, version int64) cartCall {
	c := cartCall{verbAdd, 1 + r.Int64N(250), noCondition}
	switch n := r.IntN(100); {
	case n < 25:
		return readCall
	case n < 60:
		c.verb, c.quantity = verbSet, max(0, r.Int64N(400)-100)
	}
	if r.IntN(4) == 0 {
		c.ifMatch = version
	}
	return c
}

// request is how the call is sent.
func (c cartCall) request() (method, path, body string) {
	switch c.verb {
	case verbAdd:
		return "POST", "/cart/add", fmt.Sprintf(`{"product_id":%s,"qty":%d}`, plainLine(0), c.quantity)
	case verbSet:
		return "PATCH", "/cart/items/" + plainLine(0), fmt.Sprintf(`{"quantity":%d}`, c.quantity)
	}
	return "GET", "/cart", ""
}
