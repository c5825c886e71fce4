package transfer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/transfer"
	"commerce/deploy/assert"
)

var noon = time.UnixMilli(1_800_000_000_000)

func lines(quantities ...int64) (all []cart.Line) {
	for i, n := range quantities {
		if n > 0 {
			all = append(all, cart.Line{ID: cart.NewLineID(int64(i+1), 0, nil), Quantity: n})
		}
	}
	return all
}

func cell(id string, quantities ...int64) cart.Cell {
	return cart.Cell{Cart: cart.Cart{ID: id, Version: 1, Mark: "mark", Lines: lines(quantities...)}}
}

func note(name, cartID string, n int64) cart.Note {
	return cart.Note{Name: name, Guest: "digest", At: noon, Reservation: cart.Reservation{CartID: cartID, Lines: n}}
}

// arrival is a guest's cart that was claimed under a note.
func arrival(name, cartID string, quantities ...int64) *transfer.Arrival {
	return &transfer.Arrival{
		Aside:      transfer.Aside{Claim: transfer.Claim{Owner: "1:c:1", Note: name, Name: "name"}, Cell: cell(cartID, quantities...)},
		Guest:      "digest",
		MergeRules: transfer.MergeRules{Strategy: transfer.Sum, Bounds: transfer.MergeBounds(cart.Cart{Lines: lines(quantities...)}, nil, carttest.Limits)},
		NewID:      "new", Mark: "next", Undoable: true,
	}
}

func TestReserve_CountsACartOnceAndRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	limits := carttest.Limits
	limits.Lines = 2
	owner := cell("own", 1, 1)
	owner = assert.Must(transfer.Reserve(owner, note("m1", "guest", 2), limits))(t)
	owner = assert.Must(transfer.Reserve(owner, note("m2", "guest", 2), limits))(t)
	_, err := transfer.Reserve(owner, note("m3", "other", 1), limits)
	assert.ErrorIs(t, err, transfer.ErrNoRoom, "another guest's cart")
	_, err = transfer.Reserve(owner, note("m3", "empty", 0), limits)
	assert.NoError(t, err)
	for i := range 30 {
		owner = assert.Must(transfer.Reserve(owner, note("m"+strings.Repeat("x", i+1), "guest", 2), limits))(t)
	}
	_, err = transfer.Reserve(owner, note("m33", "guest", 2), limits)
	assert.ErrorIs(t, err, transfer.ErrCrowded, "a 33rd note")
}

// A late try of a hand-over must not hide that the lines are here.
func TestReserve_LeavesANoteWhoseLinesHaveArrived(t *testing.T) {
	t.Parallel()
	to, _ := arrival("mh1", "guest", 1).Apply(transfer.Owner{}, noon)
	again := assert.Must(transfer.Reserve(to.Cell, note("mh1", "guest", 1), carttest.Limits))(t)
	assert.That(t, len(again.Pending) == 1 && again.Pending[0].Applied, "the notes are %+v", again.Pending)
	assert.Equal(t, len(transfer.Release(again, "mh1").Pending), 1, "notes after a try that could not claim")
	assert.Equal(t, len(transfer.Forget(again, "mh1").Pending), 0, "notes after the end")
}

func TestForgetOld_LeavesWhatARequestMayStillUse(t *testing.T) {
	t.Parallel()
	fresh := cart.Cell{Pending: cart.Notes{note("m1", "guest", 1)}}
	assert.Equal(t, len(transfer.ForgetOld(fresh, fresh.Pending[0], noon.Add(cart.NoteGrace-1)).Pending), 1, "of 5 minutes")
	assert.Equal(t, len(transfer.ForgetOld(fresh, fresh.Pending[0], noon.Add(cart.NoteGrace)).Pending), 0, "older")
	applied := cart.Cell{Pending: cart.Notes{fresh.Pending[0]}}
	applied.Pending[0].Applied = true
	assert.Equal(t, len(transfer.ForgetOld(applied, fresh.Pending[0], noon.Add(cart.NoteGrace)).Pending), 1, "its lines have arrived since it was read")
}

func TestClaim_GoesOnFromWhatItFinds(t *testing.T) {
	t.Parallel()
	by := transfer.Claim{Owner: "1:c:1", Note: "m1", Name: "one"}
	guest := transfer.Guest{Cell: cell("guest", 1), Keys: map[string]cart.KeyUse{"key": {At: noon, Fingerprint: "f"}}}
	needs := guest.RoomNeeded()
	taken, err := guest.Claim(by, needs)
	assert.That(t, err == nil && taken.Aside.Claim == by && taken.ID == "" && len(taken.Aside.Keys) == 1, "claimed: %+v, %v", taken, err)
	again, err := taken.Claim(transfer.Claim{Owner: "1:c:1", Name: "two"}, cart.Reservation{})
	assert.That(t, err == nil && again.Aside.Claim == by, "again: %+v, %v", again.Aside, err)
	_, err = taken.Claim(transfer.Claim{Owner: "1:c:2", Note: "m2"}, needs)
	other, is := errors.AsType[*transfer.OtherOwnerError](err)
	assert.That(t, is && other.Owner == "1:c:1", "by another owner: %v", err)

	_, err = guest.Claim(transfer.Claim{Owner: "1:c:1"}, needs)
	assert.ErrorIs(t, err, transfer.ErrNothing, "without a note")
	guest.Lines = lines(1, 1)
	_, err = guest.Claim(by, needs)
	grown, is := errors.AsType[*transfer.GrownError](err)
	assert.That(t, is && grown.Needs.Lines == 2, "a cart that has grown: %v", err)
	to, _ := arrival("m3", "third", 1).Apply(transfer.Owner{Cell: guest.Cell}, noon)
	guest.Cell = to.Cell
	_, err = guest.Claim(by, guest.RoomNeeded())
	assert.ErrorIs(t, err, transfer.ErrMerging, "lines that a failover may lose")
}

func TestApply_ARepeatAddsNothing(t *testing.T) {
	t.Parallel()
	from := arrival("m1", "guest", 1, 2)
	from.Coupons, from.Metadata = []string{"TEN"}, cart.Metadata{"name": "value"}
	from.Stamps = cart.Stamps{}.With("stamp1", "1", noon.Add(-time.Minute))
	from.Keys = map[string]cart.KeyUse{"key": {At: noon.Add(-time.Minute), Fingerprint: "f"}}
	from.Behind = 2 * time.Minute
	first, report := from.Apply(transfer.Owner{Cell: cell("own", 1)}, noon)
	assert.That(t, report != nil && report.Lines == 2 && report.ID == "1", "report %+v", report)
	assert.Equal(t, first.Lines, lines(2, 2), "lines")
	assert.That(t, first.Pending[0].Applied && first.Pending[0].Lines == 0, "its note, which was missing: %+v", first.Pending)
	use, ok := first.Stamps.Of("stamp1")
	assert.That(t, ok && use.At.Equal(noon) && first.Keys["key"].At.Equal(noon), "times of the future: %v, %v", use, first.Keys)
	again, report := from.Apply(first, noon)
	diff := cmp.Diff(first, again, cmpopts.EquateComparable(time.Time{}))
	assert.That(t, report == nil && diff == "", "again: %+v (-first +again)\n%s", report, diff)
}

// A redemption whose claim a failover has lost brings more later, with another merge in between. Its undo takes back both parts,
// and the other one can still be undone.
func TestUndo_TakesBackAllThatARedemptionHasBrought(t *testing.T) {
	t.Parallel()
	to := transfer.Owner{Cell: cell("own", 1)}
	for i, from := range []*transfer.Arrival{arrival("mhhand", "guest", 2), arrival("mlogin", "other", 3), arrival("mhhand", "guest", 4, 1)} {
		offers := to.Offers
		if from.ID == "other" {
			to.Offers = transfer.Offers{}
		}
		to, _ = from.Apply(to, noon.Add(time.Duration(i)*time.Minute))
		if from.ID == "other" {
			to.Offers = offers
		}
	}
	assert.Equal(t, to.Lines, lines(8, 1), "before")
	for _, order := range [][]string{{"hhand", "login"}, {"login", "hhand"}} {
		now, want := to, map[string][]cart.Line{"hhand": lines(4, 1), "login": lines(3)}
		for _, id := range order {
			u := now.Split(id)
			assert.That(t, cmp.Equal(u.Guest.Lines, want[id]) && u.Adjusted == nil, "%v: %s takes out %+v, tells %+v", order, id, u.Guest.Lines, u.Adjusted)
			now = now.Undo(id, "name", "mark", noon)
			came := assert.Must(now.Merge(id, noon.Add(3*time.Minute)))(t)
			assert.Equal(t, came.UndoneAs, "name", "its name")
		}
		assert.Equal(t, now.Lines, lines(1), "%v: after", order)
	}
	_, err := to.Merge("login", noon.Add(transfer.UndoLife+time.Minute))
	assert.ErrorIs(t, err, transfer.ErrUnknown, "after 15 minutes")
}
