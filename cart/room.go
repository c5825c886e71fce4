package cart

import "errors"

// Reservation is the room in a customer's cart that a merge under way has reserved for
// what a guest's cart brings.
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

// RoomNeeded is what a guest's cart needs room for.
func (c Cart) RoomNeeded() Reservation {
	return Reservation{CartID: c.ID, Lines: int64(len(c.Lines)), Text: c.TextSize()}
}
