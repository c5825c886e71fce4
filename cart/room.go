package cart

import (
	"errors"
	"maps"
)

// MaxMerges is how many merges into one cart may be under way.
const MaxMerges = 32

// Reservation is the room in a customer's cart that a merge under way has reserved for
// what a guest's cart brings.
//
// redisstore/lua/intend.lua and claim.lua decide by the same rules; TestTwin_Merges in
// redisstore holds the two equal.
type Reservation struct {
	CartID string // of the guest's cart
	Lines  int64
	Text   int64 // bytes
}

var (
	// ErrNoRoom means that the guest's cart does not fit into the customer's.
	ErrNoRoom = errors.New("cart: no room for the guest's cart")

	// ErrCrowded means that too many merges into one cart are under way.
	ErrCrowded = errors.New("cart: too many merges under way")
)

// Brings is what a guest's cart needs room for.
func (c Cart) Brings() Reservation {
	return Reservation{CartID: c.ID, Lines: int64(len(c.Lines)), Text: c.TextSize()}
}

// Covers reports whether the reservation is enough for the guest's cart as it is now. It
// is not when the cart has grown since, or another cart has taken its place.
func (r Reservation) Covers(guest Cart) bool {
	now := guest.Brings()
	return now.CartID == r.CartID && now.Lines <= r.Lines && now.Text <= r.Text
}

// Reserve notes a merge, under a name of the caller's making, and reserves its room. The
// same name again replaces its reservation. Merges that bring the same guest's cart share
// their room. ErrNoRoom comes before ErrCrowded; either changes nothing.
func (r Record) Reserve(name string, b Reservation, limits Limits) (Record, error) {
	others := maps.Clone(r.Merges)
	delete(others, name)
	held := r.Cart.Brings()
	lines, text := held.Lines, held.Text
	for _, shared := range perCart(others, b) {
		lines += shared.Lines
		text += shared.Text
	}
	if b.Lines > 0 && lines > MergeFactor*limits.Lines || b.Text > 0 && text > MergeFactor*limits.CartText {
		return r, ErrNoRoom
	}
	if len(others) >= MaxMerges {
		return r, ErrCrowded
	}
	r.Merges = put(others, name, b)
	return r, nil
}

// perCart is the room that is reserved for each guest's cart.
func perCart(merges map[string]Reservation, b Reservation) map[string]Reservation {
	all := map[string]Reservation{b.CartID: b}
	for _, m := range merges {
		r := all[m.CartID]
		all[m.CartID] = Reservation{CartID: m.CartID, Lines: max(r.Lines, m.Lines), Text: max(r.Text, m.Text)}
	}
	return all
}

// Forget drops a merge that has come to its end.
func (r Record) Forget(name string) Record {
	r.Merges = maps.Clone(r.Merges)
	delete(r.Merges, name)
	return r
}
