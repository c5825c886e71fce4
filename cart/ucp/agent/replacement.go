package agent

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"commerce/cart"
)

// Replacement is an agent's request to replace all lines of a cart. An agent sends the whole cart, which a
// shopper may have changed since the agent read it: see seen.
type Replacement struct {
	Elements []Element
	Codes    []Code // nil keeps the cart's, an empty list removes them
	Country  string // of the buyer, in ISO 3166-1; "" keeps the cart's
}

// Code is a coupon's code as the agent sent it, and its place in the agent's list.
type Code struct {
	Text string
	At   int
}

type Element struct {
	ID       string      // as the agent sent it; "" for none
	Line     cart.LineID // that the ID names; "" for none
	Product  int64       // 0 if no product can have the requested ID
	Plan     int64       // 0 for none
	Quantity int64       // 1 or more
	Inert    bool        // it changes nothing: its line stays as it is, and none is added
}

// ParseItem parses what agents call a product: its ID, or with a plan "<product>.p<plan>".
func ParseItem(s string) (product, plan int64, ok bool) {
	id, ok := cart.ParseLineID(s)
	if !ok || strings.Contains(s, ".f") {
		return 0, 0, false
	}
	return id.Product(), id.Plan(), true
}

// ErrChangedUnseen means that a change would undo what its sender has not seen.
var ErrChangedUnseen = errors.New("agent: the cart has changed since the sender of the change has read it")

// seen reports whether an agent has seen all that others have done to a cart: the IDs that it sends are of Moments since the last
// change of anybody else. An agent that sends none has, if its own change is the last one. A cart that was never used has nothing to see.
func seen(c *cart.Cell, moments []string) bool {
	if len(moments) == 0 {
		return c.ID == "" || c.ByAgent()
	}
	return !slices.ContainsFunc(moments, func(moment string) bool { return moment != c.Since() })
}

type Step struct {
	Element  int         // that it is for; -1 for a line that no element keeps
	Line     cart.LineID // whose quantity is set; "" to add the element
	Quantity int64       // 0 removes the line
}

// Plan returns the steps that make a cart hold the elements. An element keeps the line that its ID names, or else the
// first line of its product and plan that no other element keeps, and only changes its quantity. First, lines
// that no element keeps are removed and others lowered, so that stock and room are free for what follows.
func (r Replacement) Plan(c cart.Cart) []Step {
	var steps []Step
	elementOf := r.match(c.Lines)
	kept := make([]bool, len(r.Elements))
	for i, l := range c.Lines {
		e := elementOf[i]
		if e < 0 {
			steps = append(steps, Step{-1, l.ID, 0})
			continue
		}
		kept[e] = true
		if q := r.Elements[e].Quantity; q != l.Quantity && !r.Elements[e].Inert {
			steps = append(steps, Step{e, l.ID, q})
		}
	}
	for e, k := range kept {
		if !k && !r.Elements[e].Inert {
			steps = append(steps, Step{e, "", r.Elements[e].Quantity})
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.turn(&c), b.turn(&c)) })
	return steps
}

// turn orders steps by their kind.
func (s Step) turn(c *cart.Cart) int {
	switch {
	case s.Element < 0:
		return 0
	case s.Line == "":
		return 3
	case s.Quantity < c.Line(s.Line).Quantity:
		return 1
	}
	return 2
}

// match returns the element that keeps each line; -1 for none.
func (r Replacement) match(lines []cart.Line) []int {
	elementOf := slices.Repeat([]int{-1}, len(lines))
	matched := make([]bool, len(r.Elements))
	for _, byID := range []bool{true, false} {
		for e, wanted := range r.Elements {
			for i, l := range lines {
				free := elementOf[i] < 0 && !matched[e]
				if free && l.ID.Product() == wanted.Product && l.ID.Plan() == wanted.Plan && (!byID || l.ID == wanted.Line) {
					elementOf[i], matched[e] = e, true
				}
			}
		}
	}
	return elementOf
}
