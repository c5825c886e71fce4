package transfer

import (
	"errors"
	"strings"

	"commerce/cart"
)

// Guest is the slot of a guest's token, as far as transfers depend on it.
type Guest struct {
	cart.Cell
	Keys  map[string]cart.KeyUse // of the changes applied to the token's carts
	Aside *Aside                 // nil for none
}

// Aside is a guest's cart that is set aside for its new owner. A token has at most one.
type Aside struct {
	Claim
	cart.Cell                        // as it was
	Keys      map[string]cart.KeyUse // that the token had when it was claimed: a later one is of a change of a later cart
}

// Claim says for whom a cart is set aside.
type Claim struct {
	Owner string // the tag
	Note  string // the name of the owner's note under which it was claimed
	Name  string // random, of this claim. "": an earlier release has made it
}

var (
	// ErrNothing means that no guest's cart waits to be merged.
	ErrNothing = errors.New("transfer: nothing to merge")

	// ErrMerging means that a merge into the guest's cart must be finished first.
	ErrMerging = errors.New("transfer: a merge into the guest's cart is not finished")
)

// OtherOwnerError means that another owner's claim on the same token comes first.
type OtherOwnerError struct{ Owner string } // the tag

func (e *OtherOwnerError) Error() string { return "transfer: claimed by another owner" }

// GrownError means that the guest's cart was replaced, or has outgrown what was reserved for it.
type GrownError struct{ Needs cart.Reservation }

func (e *GrownError) Error() string { return "transfer: the guest's cart has changed" }

// Claim returns the slot with the guest's cart set aside, if what it needs is reserved; or as it is, if the owner has claimed the
// cart earlier. Without a note, it only finds an earlier claim. The token can be used again at once: its next cart has a new ID.
// What recognizes a retry stays there too, and so do the notes of merges into the guest's cart, whose lines arrive in the next
// one. Those that have arrived must be confirmed first: a failover could lose them, and they would arrive again elsewhere.
// Errors: ErrNothing, ErrMerging, *OtherOwnerError, *GrownError.
func (g Guest) Claim(by Claim, reserved cart.Reservation) (Guest, error) {
	needs := g.RoomNeeded()
	switch {
	case g.Aside != nil && g.Aside.Owner != by.Owner:
		return g, &OtherOwnerError{g.Aside.Owner}
	case g.Aside != nil:
		return g, nil
	case by.Note == "" || g.ID == "":
		return g, ErrNothing
	case len(g.Pending.Unapplied()) < len(g.Pending):
		return g, ErrMerging
	case !strings.HasPrefix(g.ID, ShortID(reserved.CartID)), needs.Lines > reserved.Lines, needs.Text > reserved.Text:
		return g, &GrownError{needs}
	}
	g.Aside = &Aside{by, g.Cell, g.Keys}
	g.Cell = cart.Cell{Pending: g.Pending, Stamps: g.Stamps}
	return g, nil
}
