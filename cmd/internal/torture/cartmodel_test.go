package torture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// The model of one cart: the rules of docs/cart.md, written independently of package cart.

type cartState struct {
	version int64
	lines   []lineView
}

func (s cartState) equal(other cartState) bool {
	return s.version == other.version && slices.Equal(s.lines, other.lines)
}

func (s cartState) String() string {
	lines := make([]string, len(s.lines))
	for i, l := range s.lines {
		lines[i] = fmt.Sprintf("%s×%d", l.ID, l.Quantity)
	}
	return fmt.Sprintf("%d [%s]", s.version, strings.Join(lines, " "))
}

func (s cartState) changed(lines []lineView) cartState { return cartState{s.version + 1, lines} }

// cartCall is a call on a cart of lines with at most maxQuantity.
type cartCall struct {
	verb     verb
	item     string // line
	quantity int64  // to add or to set
	ifMatch  int64  // version; noCondition for none

	method, path, body string
}

type verb string

const (
	verbRead   verb = "read"
	verbAdd    verb = "add"
	verbSet    verb = "set"
	verbRemove verb = "remove"
	verbClear  verb = "clear"
)

const (
	maxQuantity = 999
	noCondition = -1
)

func (c cartCall) String() string {
	text := fmt.Sprintf("%s %s %d", c.verb, c.item, c.quantity)
	if c.ifMatch != noCondition {
		text += fmt.Sprintf(" if %d", c.ifMatch)
	}
	return text
}

// apply returns the cart after the call, or its refusal.
func (c cartCall) apply(s cartState) (cartState, string) {
	if c.ifMatch != noCondition && c.ifMatch != s.version {
		return s, "version_mismatch"
	}
	at := slices.IndexFunc(s.lines, func(l lineView) bool { return l.ID == c.item })
	switch {
	case c.verb == verbAdd && at < 0:
		return s.changed(append(slices.Clone(s.lines), lineView{ID: c.item, Quantity: c.quantity})), ""
	case c.verb == verbAdd && s.lines[at].Quantity+c.quantity > maxQuantity:
		return s, "quantity_out_of_range"
	case c.verb == verbAdd:
		return s.with(at, s.lines[at].Quantity+c.quantity), ""
	case c.verb == verbClear && len(s.lines) > 0:
		return s.changed(nil), ""
	case c.verb == verbSet && at < 0:
		return s, "item_not_found"
	case c.verb == verbSet && c.quantity > 0:
		return s.with(at, c.quantity), ""
	case (c.verb == verbSet || c.verb == verbRemove) && at >= 0:
		return s.changed(slices.Delete(slices.Clone(s.lines), at, at+1)), ""
	}
	return s, ""
}

// with sets the quantity of a line. The version grows only if the line differs.
func (s cartState) with(at int, quantity int64) cartState {
	if s.lines[at].Quantity == quantity {
		return s
	}
	lines := slices.Clone(s.lines)
	lines[at].Quantity = quantity
	return s.changed(lines)
}

func plainLine(i int) string { return fmt.Sprint(firstProduct + i) }

// drawCall returns a random call. version is one that the client has seen.
func drawCall(r *rand.Rand, version int64) cartCall {
	c := cartCall{verb: verbRead, item: plainLine(r.IntN(5)), quantity: 1 + r.Int64N(250), ifMatch: noCondition}
	if r.IntN(4) == 0 {
		c.ifMatch = version
	}
	switch n := r.IntN(100); {
	case n < 45:
		c.verb = verbAdd
	case n < 65:
		c.verb, c.quantity = verbSet, r.Int64N(300)
	case n < 75:
		c.verb = verbRemove
	case n < 78:
		c.verb = verbClear
	default:
		c.ifMatch = noCondition
	}
	return c.request()
}

// request fills in how the call is sent.
func (c cartCall) request() cartCall {
	switch c.verb {
	case verbAdd:
		c.method, c.path, c.body = "POST", "/cart/add", fmt.Sprintf(`{"product_id":%s,"qty":%d}`, c.item, c.quantity)
	case verbSet:
		c.method, c.path, c.body = "PATCH", "/cart/items/"+c.item, fmt.Sprintf(`{"quantity":%d}`, c.quantity)
	case verbRemove:
		c.method, c.path = "DELETE", "/cart/items/"+c.item
	case verbClear:
		c.method, c.path = "DELETE", "/cart/clear"
	default:
		c.method, c.path = "GET", "/cart"
	}
	return c
}

func readCall() cartCall { return cartCall{verb: verbRead, ifMatch: noCondition}.request() }
