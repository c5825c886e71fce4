package cart

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"commerce/auth/problem"
)

// Strategy says what becomes of a line that both carts hold.
type Strategy string

const (
	Sum          Strategy = "sum"
	Max          Strategy = "max"
	KeepGuest    Strategy = "guest"
	KeepCustomer Strategy = "customer"
)

func ParseStrategy(s string) (Strategy, error) {
	switch st := Strategy(s); st {
	case Sum, Max, KeepGuest, KeepCustomer:
		return st, nil
	}
	return "", fmt.Errorf("%q is none of sum, max, guest, customer", s)
}

// MergeReport tells a shopper what a merge did.
type MergeReport struct {
	ID       string    // names the merge, so that a client shows it once
	At       time.Time // of the merge
	Lines    int64     // lines that came from the guest's cart
	Adjusted []Adjustment
	Code     problem.Code // cart_full when a guest's cart waits until there is room for it; "" for none
}

const (
	ReportLife  = time.Minute // how long a report is kept
	AdjustedMax = 100         // adjustments of a report
)

// Adjustment is a line whose quantity was cut to what may be bought.
type Adjustment struct {
	Line      LineID
	Requested int64
	Kept      int64
	Code      problem.Code
}

// With adds to a report that another guest's cart waits for room; waits is nil if none does,
// and m is nil if nothing was merged.
func (m *MergeReport) With(waits *MergeReport) *MergeReport {
	if m == nil || waits == nil {
		return cmp.Or(m, waits)
	}
	both := *m
	both.Code = waits.Code
	return &both
}

// Reservation is the room in a customer's cart for what a merge under way brings.
type Reservation struct {
	CartID string // of the guest's cart
	Lines  int64
	Text   int64 // bytes

	Applied bool // the lines are in the customer's cart; what is left is to delete the guest's
}

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

// RoomNeeded is what a guest's cart needs room for.
func (c Cart) RoomNeeded() Reservation {
	return Reservation{CartID: c.ID, Lines: int64(len(c.Lines)), Text: c.TextSize()}
}
