package cart

import (
	"testing"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

func TestNotes_LeaveTheRoomThatTheyReserve(t *testing.T) {
	t.Parallel()
	limits := Limits{Lines: 10, CartText: 100}
	note := func(id string, lines, text int64) Note {
		return Note{Reservation: Reservation{CartID: id, Lines: lines, Text: text}}
	}
	for name, test := range map[string]struct {
		notes       Notes
		lines, text int64
	}{
		"none":                 {nil, 10, 100},
		"up to the limits":     {Notes{note("A", 10, 100)}, 10, 100},
		"beyond them":          {Notes{note("A", 12, 130)}, 8, 70},
		"of one cart, shared":  {Notes{note("A", 12, 5), note("A", 3, 130)}, 8, 70},
		"of two carts, summed": {Notes{note("A", 9, 70), note("B", 3, 60)}, 8, 70},
	} {
		left := test.notes.Left(limits)
		assert.Equal(t, []int64{left.Lines, left.CartText}, []int64{test.lines, test.text}, "%s", name)
	}
}

func TestMergeReport_SaysThatAnotherCartWaits(t *testing.T) {
	t.Parallel()
	var none *MergeReport
	merged, waits := &MergeReport{ID: "A", Lines: 1}, &MergeReport{ID: "B", Code: problem.CartFull}
	assert.That(t, none.With(nil) == nil && none.With(waits) == waits && merged.With(nil) == merged,
		"a report of nothing counted")
	if both := merged.With(waits); both.ID != "A" || both.Lines != 1 || both.Code != problem.CartFull || merged.Code != "" {
		t.Errorf("got %+v, and the first has become %+v", both, merged)
	}
}
