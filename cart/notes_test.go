package cart

import (
	"testing"

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
