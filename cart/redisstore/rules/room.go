package rules

import (
	"maps"

	"commerce/cart"
)

// MaxMerges is how many merges into one cart may be under way.
const MaxMerges = 32

// Covers reports whether the reservation is enough for the guest's cart as it is now.
func Covers(r cart.Reservation, guest cart.Cart) bool {
	now := guest.RoomNeeded()
	return now.CartID == r.CartID && now.Lines <= r.Lines && now.Text <= r.Text
}

// Room is what lines and their text take up in a cart.
type Room struct {
	Lines int64
	Text  int64 // bytes
}

// Reserve notes a merge, under a name of the caller's making, and reserves its room. The same name
// again replaces its reservation. Errors: ErrNoRoom, or else ErrCrowded.
func (r Record) Reserve(name string, b cart.Reservation, limits cart.Limits) (Record, error) {
	merges := put(maps.Clone(r.Merges), name, b)
	held, all := r.Cart.RoomNeeded(), reserved(merges)
	if b.Lines > 0 && held.Lines+all.Lines > cart.MergeFactor*limits.Lines || b.Text > 0 && held.Text+all.Text > cart.MergeFactor*limits.CartText {
		return r, cart.ErrNoRoom
	}
	if len(merges) > MaxMerges {
		return r, cart.ErrCrowded
	}
	r.Merges = merges
	return r, nil
}

// reserved is the room that merges under way have reserved. Merges that bring the same
// guest's cart share their room.
func reserved(merges map[string]cart.Reservation) (all Room) {
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

// WithoutReserved returns the limits for a change, so that the lines of merges under way still fit.
func WithoutReserved(l cart.Limits, reserved Room) cart.Limits {
	l.Lines = min(l.Lines, cart.MergeFactor*l.Lines-reserved.Lines)
	l.CartText = min(l.CartText, cart.MergeFactor*l.CartText-reserved.Text)
	return l
}

// Forget drops a merge that has come to its end.
func (r Record) Forget(name string) Record {
	r.Merges = maps.Clone(r.Merges)
	delete(r.Merges, name)
	return r
}
