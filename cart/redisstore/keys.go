package redisstore

import (
	"strconv"
	"strings"

	"commerce/auth"
)

// All keys are built in this file. The part in braces is the hash tag: all keys of one
// cart are in one slot of a cluster, so that one script may use them together.
//
//	cart:{1:c:1001}              the cart
//	cart:{1:c:1001}:keys         idempotency keys of the changes applied to it
//	cart:{1:g:…}:claimed         a guest cart on its way to a customer
//	cart:{1:c:1001}:offered:<id> quantities that the guest's cart with that ID has offered

// Ref refers to the cart of one guest or customer, whether or not it exists.
type Ref struct {
	tag   string // store, kind and owner, such as "1:c:1001"
	guest bool
}

// GuestRef refers to a guest's cart. Keys contain the token's digest, never the token.
func GuestRef(store int64, token auth.CartToken) Ref {
	return Ref{tag: strconv.FormatInt(store, 10) + ":g:" + token.Digest(), guest: true}
}

// CustomerRef refers to a customer's cart.
func CustomerRef(store int64, customer string) Ref {
	return Ref{tag: strconv.FormatInt(store, 10) + ":c:" + auth.CustomerKey(customer)}
}

// String identifies the cart in this process. It has no token.
func (r Ref) String() string { return r.tag }

func (r Ref) cartKey() string    { return "cart:{" + r.tag + "}" }
func (r Ref) keysKey() string    { return r.cartKey() + ":keys" }
func (r Ref) claimedKey() string { return r.cartKey() + ":claimed" }

// guestPattern matches all keys that a token has in any store.
func guestPattern(token auth.CartToken) string { return "cart:{*:g:" + token.Digest() + "}*" }

// refOf returns the reference that a key belongs to.
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

// offeredKey is the key of the quantities that one guest's cart has offered to this
// customer's cart.
func (r Ref) offeredKey(guestCartID string) string { return r.cartKey() + ":offered:" + guestCartID }

// guestOfStore refers to a guest's cart in the same store, by the digest of the token.
func (r Ref) guestOfStore(digest string) Ref {
	store, _, _ := strings.Cut(r.tag, ":")
	return Ref{tag: store + ":g:" + digest, guest: true}
}

// tokenDigest is the digest of the token in a guest's tag.
func (r Ref) tokenDigest() string { return r.tag[strings.LastIndexByte(r.tag, ':')+1:] }
