package redisstore

import (
	"strconv"
	"strings"

	"commerce/auth"
)

// Every key is made in this file. The part in braces is the hash tag: all keys of
// one cart lie in one slot of a cluster, so that a script may touch them together.
//
//	cart:{1:c:1001}              the cart
//	cart:{1:c:1001}:keys         idempotency keys of the changes applied to it
//	cart:{1:g:…}:claimed         a guest cart on its way to a customer
//	cart:{1:c:1001}:offered:<id> quantities that the guest cart of that id has offered

// Ref names the place of one cart, whether or not anything lies there.
type Ref struct {
	tag   string // store, kind and owner, such as "1:c:1001"
	guest bool
}

// GuestRef is the place of a guest's cart. The token itself never gets into a key.
func GuestRef(store int64, token auth.CartToken) Ref {
	return Ref{tag: strconv.FormatInt(store, 10) + ":g:" + token.Digest(), guest: true}
}

// CustomerRef is the place of a customer's cart.
func CustomerRef(store int64, customer string) Ref {
	return Ref{tag: strconv.FormatInt(store, 10) + ":c:" + auth.CustomerKey(customer)}
}

func (r Ref) cartKey() string    { return "cart:{" + r.tag + "}" }
func (r Ref) keysKey() string    { return r.cartKey() + ":keys" }
func (r Ref) claimedKey() string { return r.cartKey() + ":claimed" }

// guestPattern matches all keys that a token has in any store.
func guestPattern(token auth.CartToken) string { return "cart:{*:g:" + token.Digest() + "}*" }

// refOf is the place that a key belongs to.
func refOf(key string) Ref {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return Ref{tag: tag, guest: strings.Contains(tag, ":g:")}
}

// claimsPattern matches the claimed carts of all guests of the same store.
func (r Ref) claimsPattern() string {
	store, _, _ := strings.Cut(r.tag, ":")
	return "cart:{" + store + ":g:*}:claimed"
}

// offeredKey is where a customer's cart notes what one guest cart has offered it.
func (r Ref) offeredKey(guestCartID string) string { return r.cartKey() + ":offered:" + guestCartID }

// guestBeside is the place of a guest of the same store, by the digest of the token.
func (r Ref) guestBeside(digest string) Ref {
	store, _, _ := strings.Cut(r.tag, ":")
	return Ref{tag: store + ":g:" + digest, guest: true}
}

// tokenDigest is the part of a guest's tag that stands for the token.
func (r Ref) tokenDigest() string { return r.tag[strings.LastIndexByte(r.tag, ':')+1:] }
