package service

import (
	"encoding/base64"
	"slices"

	"commerce/cart"
)

// A line's ID has a digest of the answers to its fields, from which short ones, such as a phone number, can be guessed.
// So whoever must not see the answers gets an HMAC of the ID, which says nothing in another cart.

// withHiddenIDs returns a copy of a cart. The IDs of lines with fields keep their form.
func (s *Carts) withHiddenIDs(c cart.Cart) cart.Cart {
	c.Lines = slices.Clone(c.Lines)
	for i, l := range c.Lines {
		if len(l.Fields) > 0 {
			c.Lines[i].ID = cart.LineID(l.ID.Item() + ".f" + s.hidden(s.Keys.Name(), c, l.ID))
		}
	}
	return c
}

// hidden returns the HMAC of a line's ID under the named key; 16 characters of A-Za-z0-9_-.
func (s *Carts) hidden(key string, c cart.Cart, line cart.LineID) string {
	sum, _ := s.Keys.Derive(key, "line", c.ID, string(line))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
