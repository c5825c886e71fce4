package redisstore

import (
	"strconv"
	"strings"

	"commerce/auth"
	"commerce/cart"
)

// All keys are built in this file. All keys of one cart have the same hash tag, in braces, and so
// are in one slot of a cluster.
//
//	cart:{1:c:1001}              the cart
//	cart:{1:c:1001}:keys         idempotency keys of the changes applied to it
//	cart:{1:g:…}:claimed         a guest cart on its way to its new owner
//	cart:{1:g:…}:moved           where an agent's cart was handed over to (see Moved)
//	cart:{1:c:1001}:offered:<id> quantities that the guest's cart with that ID has offered
//	cart:{1:c:1001}:came         what merges have brought, for their undo
//	cart:{1:c:1001}:<part>…      what a package beside the core keeps (see Beside)
//	cart:{1:<kind>:…}            the same, in a slot of its own, by the digest of a code: s a share, b a used link

// Ref refers to the cart of one guest or customer, whether or not it exists.
type Ref struct {
	key   string // of the cart, such as "cart:{1:c:1001}"; every call needs it several times
	guest bool
}

// GuestRef refers to a guest's cart. Keys contain the token's digest, never the token.
func GuestRef(store int64, token auth.CartToken) Ref {
	return Ref{key: beforeTag + strconv.FormatInt(store, 10) + ":g:" + token.Digest() + afterTag, guest: true}
}

func CustomerRef(store int64, customer string) Ref {
	return Ref{key: beforeTag + strconv.FormatInt(store, 10) + ":c:" + auth.CustomerKey(customer) + afterTag}
}

// GuestRefOf refers to a guest's cart by the digest of its token.
func GuestRefOf(store int64, digest string) Ref {
	return RefOfTag(strconv.FormatInt(store, 10) + ":g:" + digest)
}

// RefOfTag refers to the cart of a tag: the store, the kind and the owner, such as "1:c:1001".
func RefOfTag(tag string) Ref {
	_, kind, _ := strings.Cut(tag, ":")
	return Ref{key: beforeTag + tag + afterTag, guest: strings.HasPrefix(kind, "g:")}
}

const beforeTag, afterTag = "cart:{", "}"

// tag is the store, the kind and the owner, such as "1:c:1001".
func (r Ref) tag() string { return r.key[len(beforeTag) : len(r.key)-len(afterTag)] }

func (r Ref) store() string {
	store, _, _ := strings.Cut(r.tag(), ":")
	return store
}

// String identifies the cart in this process. It has no token.
func (r Ref) String() string {
	if r.key == "" {
		return ""
	}
	return r.tag()
}

// CartKey is the key of the cart, and KeysKey that of its idempotency keys.
func (r Ref) CartKey() string    { return r.key }
func (r Ref) KeysKey() string    { return r.key + ":keys" }
func (r Ref) claimedKey() string { return r.key + ":claimed" }
func (r Ref) movedKey() string   { return r.key + ":moved" }

// neverExists is a key that no cart has. exec says what it is for.
const neverExists = "cart:master"

// guestPattern matches all keys that a token has in any store.
func guestPattern(token auth.CartToken) string { return beforeTag + "*:g:" + token.Digest() + "}*" }

func refOf(key string) Ref {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return RefOfTag(tag)
}

// guestsPattern matches all keys of all guests of the same store.
func (r Ref) guestsPattern() string { return beforeTag + r.store() + ":g:*" }

func (r Ref) offeredKey(guestCartID string) string { return r.CartKey() + ":offered:" + guestCartID }

func (r Ref) cameKey() string { return r.CartKey() + ":came" }

// BesideKey is the key of a hash next to the cart. name begins with the part that a Beside names, and continues after a colon.
func (r Ref) BesideKey(name string) string { return r.CartKey() + ":" + name }

// OtherKey is a key of the same store that belongs to no cart, by the digest of a code that is as secret as a token. kind is one
// letter, and neither c nor g.
func (r Ref) OtherKey(kind, digest string) string {
	return beforeTag + r.store() + ":" + kind + ":" + digest + afterTag
}

// TokenDigest is the digest of the token in a guest's tag.
func (r Ref) TokenDigest() string { return r.tag()[strings.LastIndexByte(r.tag(), ':')+1:] }

// GuestOf refers to the guest's cart that a note of its owner is about.
func GuestOf(owner Ref, note cart.Note) Ref { return RefOfTag(owner.store() + ":g:" + note.Guest) }
