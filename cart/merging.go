package cart

import (
	"cmp"
	"fmt"
	"slices"

	"commerce/auth/problem"
)

// Strategy says what becomes of a line that both carts hold.
type Strategy string

// The strategies.
const (
	Sum          Strategy = "sum"
	Max          Strategy = "max"
	KeepGuest    Strategy = "guest"
	KeepCustomer Strategy = "customer"
)

// ParseStrategy reads a setting.
func ParseStrategy(s string) (Strategy, error) {
	switch st := Strategy(s); st {
	case Sum, Max, KeepGuest, KeepCustomer:
		return st, nil
	}
	return "", fmt.Errorf("%q is none of sum, max, guest, customer", s)
}

// MergeReport tells a shopper what a merge did.
type MergeReport struct {
	Lines    int64 // lines that came from the guest's cart
	Adjusted []Adjustment
	Code     problem.Code // cart_full when a guest's cart waits until there is room for it; "" for none
}

// Adjustment is a line whose quantity was cut to what may be bought.
type Adjustment struct {
	Line      LineID
	Requested int64
	Kept      int64
	Code      problem.Code
}

// Plus adds reports up; nil is a report of nothing.
func (m *MergeReport) Plus(other *MergeReport) *MergeReport {
	if m == nil || other == nil {
		return cmp.Or(m, other)
	}
	return &MergeReport{
		Lines: m.Lines + other.Lines, Adjusted: slices.Concat(m.Adjusted, other.Adjusted), Code: cmp.Or(m.Code, other.Code),
	}
}
