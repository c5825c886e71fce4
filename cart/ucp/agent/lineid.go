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
// The version is the one since which the agent alone has changed the cart, so its own changes end no ID. That of the line "" is for a
// new element, whose sender has seen that version.
func (s *Carts) ShownIDs(c Cart) func(cart.LineID) string {
	hidden := s.carts.HiddenIDs(s.carts.Keys.Name(), c.Cart)
	return func(line cart.LineID) string { return s.carts.Keys.Name() + hidden(line) + "~" + c.Since }
}

// Shown reports whether a text can be the ID of a line as shown.
func (s *Carts) Shown(id string) bool {
	name, moment, _ := strings.Cut(id, "~")
	return moment != "" && s.carts.Keys.Knows(name)
}

func momentsOf(ids []string) []string {
	moments := make([]string, len(ids))
	for i, id := range ids {
		_, moments[i], _ = strings.Cut(id, "~")
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
