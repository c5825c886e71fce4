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

	Applied bool // the lines are in the customer's cart; what is left is to delete the guest's
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

// Room is what lines and their text take up in a cart.
type Room struct {
	Lines int64
	Text  int64 // bytes
}

// Reserve notes a merge, under a name of the caller's making, and reserves its room. The
// same name again replaces its reservation. ErrNoRoom comes before ErrCrowded; either changes
// nothing.
func (r Record) Reserve(name string, b Reservation, limits Limits) (Record, error) {
	merges := put(maps.Clone(r.Merges), name, b)
	held, all := r.Cart.Brings(), reserved(merges)
	if b.Lines > 0 && held.Lines+all.Lines > MergeFactor*limits.Lines || b.Text > 0 && held.Text+all.Text > MergeFactor*limits.CartText {
		return r, ErrNoRoom
	}
	if len(merges) > MaxMerges {
		return r, ErrCrowded
	}
	r.Merges = merges
	return r, nil
}

// reserved is the room that merges under way have reserved. Merges that bring the same
// guest's cart share their room.
func reserved(merges map[string]Reservation) (all Room) {
	perCart := map[string]Room{}
	for _, m := range merges {
		r := perCart[m.CartID]
		perCart[m.CartID] = Room{Lines: max(r.Lines, m.Lines), Text: max(r.Text, m.Text)}
	}
	for _, r := range perCart {
		all.Lines += r.Lines
		all.Text += r.Text
	}
	return all
}

// Beside returns the limits for a change while merges under way have reserved room, so that the
// lines of these merges still fit.
func (l Limits) Beside(reserved Room) Limits {
	l.Lines = min(l.Lines, MergeFactor*l.Lines-reserved.Lines)
	l.CartText = min(l.CartText, MergeFactor*l.CartText-reserved.Text)
	return l
}

// Forget drops a merge that has come to its end.
func (r Record) Forget(name string) Record {
	r.Merges = maps.Clone(r.Merges)
	delete(r.Merges, name)
	return r
}
