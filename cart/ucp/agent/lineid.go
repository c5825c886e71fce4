package agent

import (
	"strings"

	"commerce/cart"
)

// ShownIDs returns a function for the IDs of a cart's lines as agents see them:
//
//	<name of the key><HMAC of the line><HMAC of that>~<version>.<mark>
//
// The version is the one since which the agent alone has changed the cart, so its own changes end no ID. The second HMAC tells the IDs
// of lines that are gone from those that the agent was never shown. The ID of the line "" is for a new element, whose sender has
// seen that version.
func (s *Carts) ShownIDs(c Cart) func(cart.LineID) string {
	hidden := s.carts.HiddenIDs(s.carts.Keys.Name(), c.ID)
	return func(line cart.LineID) string {
		return s.carts.Keys.Name() + signed(hidden, hidden(line)) + "~" + c.Since
	}
}

func signed(hidden func(cart.LineID) string, name string) string {
	return name + hidden(cart.LineID("shown " + name))[:4]
}

// named completes elements with the lines of the cart that their IDs name, and without the IDs that no line of it ever had, under
// either key: these are unknown. moments are those of the other IDs.
func (s *Carts) named(v *Visit, elements []Element, c cart.Cart) (named []Element, moments []string, unknown []int) {
	lines, own := map[string]cart.LineID{}, map[string]func(cart.LineID) string{}
	for _, key := range []string{s.carts.Keys.Name(), s.carts.Keys.Previous()} {
		own[key] = s.carts.HiddenIDs(key, v.ID)
		for _, l := range c.Lines {
			lines[key+own[key](l.ID)] = l.ID
		}
	}
	for i, e := range elements {
		id, moment, _ := strings.Cut(e.ID, "~")
		key, name := id[:min(keyName, len(id))], id[:max(len(id)-4, 0)]
		if hidden := own[key]; e.ID != "" && (hidden == nil || len(name) < keyName || key+signed(hidden, name[keyName:]) != id) {
			e.ID, unknown = "", append(unknown, i)
		} else if e.ID != "" {
			e.Line, moments = lines[name], append(moments, moment)
		}
		named = append(named, e)
	}
	return named, moments, unknown
}
