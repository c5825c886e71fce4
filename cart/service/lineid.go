package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"commerce/cart"
)

// A line's ID has a digest of the answers to its fields, from which short ones, such as a phone number, can be guessed.
// So whoever must not see the answers gets an HMAC of the ID, which differs between carts.

// hidden returns a function for the HMACs of the IDs of a cart's lines under the named key: 16 characters of A-Za-z0-9_-.
func (s *Carts) hidden(key string, c cart.Cart) func(cart.LineID) string {
	secret, _ := s.Keys.Derive(key, "line ids", c.ID)
	mac := hmac.New(sha256.New, secret[:])
	return func(line cart.LineID) string {
		mac.Reset()
		mac.Write([]byte(line))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12])
	}
}

// withHiddenIDs returns a copy of a cart. The IDs of lines with fields keep their form.
func (s *Carts) withHiddenIDs(c cart.Cart) cart.Cart {
	hidden := s.hidden(s.Keys.Name(), c)
	c.Lines = slices.Clone(c.Lines)
	for i, l := range c.Lines {
		if len(l.Fields) > 0 {
			c.Lines[i].ID = cart.LineID(l.ID.Item() + ".f" + hidden(l.ID))
		}
	}
	return c
}

// ShownIDs returns a function for the IDs of a cart's lines as agents see them:
//
//	<name of the key><HMAC>~<version>.<mark>
//
// That of the line "" is for a new element, whose sender has seen that version.
func (s *Carts) ShownIDs(c cart.Cart) func(cart.LineID) string {
	hidden := s.hidden(s.Keys.Name(), c)
	return func(line cart.LineID) string { return s.Keys.Name() + hidden(line) + "~" + c.Moment() }
}

// momentsOf returns what IDs as shown say of the version; "" for any other text, which nobody has been shown.
func (s *Carts) momentsOf(ids []string) []string {
	moments := make([]string, len(ids))
	for i, id := range ids {
		if name, moment, _ := strings.Cut(id, "~"); s.Keys.Knows(name) {
			moments[i] = moment
		}
	}
	return moments
}

// named returns the replacement with the lines of the cart that its elements name, under either key.
func (s *Carts) named(r cart.Replacement, c cart.Cart) cart.Replacement {
	lines := map[string]cart.LineID{}
	for _, key := range []string{s.Keys.Name(), s.Keys.Previous()} {
		hidden := s.hidden(key, c)
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
