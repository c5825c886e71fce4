package transfer

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// ErrUnknown means that a merge is unknown, or too long ago.
var ErrUnknown = errors.New("transfer: no such merge")

// Merge returns what a merge has brought; ErrUnknown if it is unknown, or if at this time neither it can be
// undone nor its undo repeated.
func (o Owner) Merge(id string, now time.Time) (CameIn, error) {
	came, ok := o.Came[id]
	if !ok || !came.counts(now) {
		return CameIn{}, ErrUnknown
	}
	return came, nil
}

// Split returns what undoing a merge makes of the owner's cart, and of a guest's that gets what is taken out.
func (o Owner) Split(id string) Undone {
	came := o.Came[id]
	var later []CameIn
	for _, other := range slices.Sorted(maps.Keys(o.Came)) {
		if all := o.Came[other]; other != id && all.UndoneAs == "" && all.At.After(came.At) {
			later = append(later, all)
		}
	}
	return UndoMerge(o.Cart, came, later...)
}

// Undo returns the owner's slot without what a merge has brought, and with the name of the undo, by which a repeat finds the
// guest's cart. mark is that of the version that this makes.
func (o Owner) Undo(id, name, mark string, now time.Time) Owner {
	undone, came := o.Split(id), maps.Clone(o.Came)
	for other, all := range came {
		if other != id && all.At.After(came[id].At) {
			came[other] = all.Below(undone.Guest.Lines)
		}
	}
	this := came[id]
	this.UndoneAs, this.UndoneAt, this.Adjusted = name, now, undone.Adjusted
	came[id] = this
	o.Came = came
	if undone.Customer.Version != o.Version {
		undone.Customer.Mark = mark
	}
	o.Cart = undone.Customer
	return o
}
