package agent

import (
	"slices"
	"strings"

	"commerce/cart"
)

// ShownIDs returns a function for the IDs of a cart's lines as agents see them:
//
//	<name of the key><HMAC>~<version>.<mark>
//
// That of the line "" is for a new element, whose sender has seen that version.
func (s *Carts) ShownIDs(c cart.Cart) func(cart.LineID) string {
	hidden := s.carts.HiddenIDs(s.carts.Keys.Name(), c)
	return func(line cart.LineID) string { return s.carts.Keys.Name() + hidden(line) + "~" + c.Moment() }
}

// momentsOf returns what IDs as shown say of the version; "" for any other text, which nobody has been shown.
func (s *Carts) momentsOf(ids []string) []string {
	moments := make([]string, len(ids))
	for i, id := range ids {
		if name, moment, _ := strings.Cut(id, "~"); s.carts.Keys.Knows(name) {
			moments[i] = moment
		}
	}
	return moments
}

// named returns the replacement with the lines of the cart that its elements name, under either key.
func (s *Carts) named(r Replacement, c cart.Cart) Replacement {
	lines := map[string]cart.LineID{}
	for _, key := range []string{s.carts.Keys.Name(), s.carts.Keys.Previous()} {
		hidden := s.carts.HiddenIDs(key, c)
		for _, l := range c.Lines {
			lines[key+hidden(l.ID)] = l.ID
		}
	}
	r.Elements = slices.Clone(r.Elements)
	for i := range r.Elements {
		name, _, _ := strings.Cut(r.Elements[i].ID, "~")
		r.Elements[i].Line = lines[name]
	}
	return r
}
