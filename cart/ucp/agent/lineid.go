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

const checkSize = 4 // characters of the second HMAC

func signed(hidden func(cart.LineID) string, name string) string {
	return name + hidden(cart.LineID("shown " + name))[:checkSize]
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
	lineOf := func(id string) (line cart.LineID, known bool) {
		if len(id) < keyName+checkSize {
			return "", false
		}
		key, name := id[:keyName], id[:len(id)-checkSize]
		hidden := own[key]
		return lines[name], hidden != nil && key+signed(hidden, name[keyName:]) == id
	}
	for i, e := range elements {
		if e.ID != "" {
			id, moment, _ := strings.Cut(e.ID, "~")
			if line, known := lineOf(id); known {
				e.Line, moments = line, append(moments, moment)
			} else {
				e.ID, unknown = "", append(unknown, i)
			}
		}
		named = append(named, e)
	}
	return named, moments, unknown
}
