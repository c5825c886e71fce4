package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"commerce/cart"
)

// A line's ID has a digest of the answers to its fields, from which short ones, such as a phone number, can be guessed.
// So whoever must not see the answers gets an HMAC of the ID, which differs between carts.

// HiddenIDs returns a function for the HMACs of the IDs of lines of the cart with an ID, under the named key: 16 characters of A-Za-z0-9_-.
func (s *Carts) HiddenIDs(key, id string) func(cart.LineID) string {
	secret, _ := s.Keys.Derive(key, "line ids", id)
	mac := hmac.New(sha256.New, secret[:])
	return func(line cart.LineID) string {
		mac.Reset()
		mac.Write([]byte(line))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12])
	}
}
