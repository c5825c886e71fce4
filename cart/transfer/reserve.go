// Package transfer moves carts from one owner to another: on login, when a code is redeemed, and when a merge is undone.
//
// The two carts may lie in different slots of a cluster, which no transaction spans. So a transfer has steps: reserve room in
// the owner's slot, claim the guest's cart, apply it to the owner's, finish the claim, forget the note. Each step is decided from one slot and committed completely or not at all. It
// recognizes its own earlier result, so another request can continue from there.
package transfer

import (
	"errors"
	"slices"
	"time"

	"commerce/cart"
)

// notesKept is how many merges into one cart may be under way.
const notesKept = 32

var (
	// ErrNoRoom means that the guest's cart does not fit into the customer's.
	ErrNoRoom = errors.New("cart: no room for the guest's cart")

	ErrCrowded = errors.New("cart: too many merges under way")
)

// ShortID returns the prefix of a cart ID that notes store, to keep the cart small.
func ShortID(cartID string) string {
	if cartID == "" {
		return "-"
	}
	return cartID[:min(len(cartID), 10)]
}

// Reserve returns the owner's cell with a note that a guest's cart is to be merged, which reserves room for it. Merges cannot
// make a cart grow without limit then, and the next request finds a broken merge. Errors: ErrNoRoom, ErrCrowded.
func Reserve(owner cart.Cell, n cart.Note, limits cart.Limits) (cart.Cell, error) {
	others := slices.DeleteFunc(slices.Clone(owner.Pending), func(o cart.Note) bool { return o.Name == n.Name })
	// The tries of a hand-over share a note. A late one must not hide from a claim that the lines are here: a failover may lose them.
	n.Applied = slices.ContainsFunc(owner.Pending, func(o cart.Note) bool { return o.Name == n.Name && o.Applied && o.CartID == n.CartID })
	all := append(others, n)
	lines, text := all.Reserved()
	lines, text = lines+int64(len(owner.Lines)), text+owner.TextSize()
	switch {
	case n.Lines > 0 && lines > cart.MergeFactor*limits.Lines, n.Text > 0 && text > cart.MergeFactor*limits.CartText:
		return owner, ErrNoRoom
	case len(others) >= notesKept:
		return owner, ErrCrowded
	}
	owner.Pending = all
	return owner, nil
}

// Release returns the owner's cell without a note under which nothing could be claimed, unless another request has brought the
// lines under it.
func Release(owner cart.Cell, note string) cart.Cell {
	return without(owner, func(n cart.Note) bool { return n.Name == note && !n.Applied })
}

// Forget returns the owner's cell without the notes of finished merges.
func Forget(owner cart.Cell, notes ...string) cart.Cell {
	return without(owner, func(n cart.Note) bool { return slices.Contains(notes, n.Name) })
}

// ForgetOld returns the owner's cell without a note that was found to have no claim: if its lines had arrived when it was read, or
// if they have not and it is old. A note whose lines arrived after the read stays.
func ForgetOld(owner cart.Cell, note cart.Note, now time.Time) cart.Cell {
	return without(owner, func(n cart.Note) bool {
		return n.Name == note.Name && (n.Applied && note.Applied || !n.Applied && n.Old(now))
	})
}

func without(owner cart.Cell, gone func(cart.Note) bool) cart.Cell {
	owner.Pending = slices.DeleteFunc(slices.Clone(owner.Pending), gone)
	return owner
}
