package cart

import (
	"cmp"
	"slices"
	"time"

	"commerce/auth/problem"
)

// Note is what one request leaves in the cart of an owner while it merges a guest's cart into it. It reserves room for
// the guest's lines, and leads the next request to a merge that was broken off.
type Note struct {
	Name  string    // random, of the request; that of a hand-over is derived from its code
	Guest string    // digest of the guest's token
	At    time.Time // by Redis' clock
	Reservation
}

// NoteGrace is the age at which a note without a claim is of a dead request.
const NoteGrace = 5 * time.Minute

// Old reports whether the note is older than any request can be, by this process' clock. Redis checks its age again
// before it deletes a note.
func (n Note) Old(now time.Time) bool { return now.Sub(n.At) >= NoteGrace }

// Notes are all merges under way into one cart: each device may bring a guest's cart.
type Notes []Note

// AppliedFrom reports whether the lines of a guest, by the digest of the token, are in the owner's cart.
func (all Notes) AppliedFrom(guest string) bool {
	return slices.ContainsFunc(all, func(n Note) bool { return n.Applied && n.Guest == guest })
}

// Unapplied returns the merges whose lines are not in the cart yet.
func (all Notes) Unapplied() Notes {
	return slices.DeleteFunc(slices.Clone(all), func(n Note) bool { return n.Applied })
}

// Has reports whether one of the notes has a name.
func (all Notes) Has(name string) bool {
	return slices.ContainsFunc(all, func(n Note) bool { return n.Name == name })
}

// hold reports whether a change must wait for a merge, unless it ignores that.
func (all Notes) hold(ignored Notes) bool {
	return slices.ContainsFunc(all, func(n Note) bool { return !n.Applied && !ignored.Has(n.Name) })
}

// Reserved returns the lines and the bytes of text for which the notes reserve room. Notes of the same guest's cart share it.
func (all Notes) Reserved() (lines, text int64) {
	rooms := make(map[string]Reservation, len(all))
	for _, n := range all {
		room := rooms[n.CartID]
		room.Lines, room.Text = max(room.Lines, n.Lines), max(room.Text, n.Text)
		rooms[n.CartID] = room
	}
	for _, room := range rooms {
		lines, text = lines+room.Lines, text+room.Text
	}
	return lines, text
}

// Left returns the limits for a change. What the cart holds and what is reserved must not exceed MergeFactor times the limits.
func (all Notes) Left(l Limits) Limits {
	if len(all) == 0 {
		return l
	}
	lines, text := all.Reserved()
	l.Lines, l.CartText = min(l.Lines, MergeFactor*l.Lines-lines), min(l.CartText, MergeFactor*l.CartText-text)
	return l
}

// Reservation is the room in a customer's cart for what a merge under way brings.
type Reservation struct {
	CartID string // of the guest's cart
	Lines  int64
	Text   int64 // bytes

	Applied bool // the lines are in the customer's cart; what is left is to delete the guest's
}

// RoomNeeded is what a guest's cart needs room for.
func (c Cart) RoomNeeded() Reservation {
	return Reservation{CartID: c.ID, Lines: int64(len(c.Lines)), Text: c.TextSize()}
}

// MergeReport tells a shopper what a merge did.
type MergeReport struct {
	ID       string    // names the merge, so that a client shows it once
	At       time.Time // of the merge
	Lines    int64     // lines that came from the guest's cart
	Adjusted []Adjustment
	Code     problem.Code // cart_full when a guest's cart waits until there is room for it; "" for none
}

// ReportLife is how long a report is kept.
const ReportLife = time.Minute

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
