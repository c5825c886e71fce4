package cart

import (
	"errors"
	"fmt"
	"testing"
)

var oneLine = Limits{Lines: 1, CartText: 2}

func TestReserve_CountsTheCartAndAllThatIsReserved(t *testing.T) {
	t.Parallel()
	r := Record{Cart: cartOf(Line{ID: "1", Notice: "n"})}
	r, err := r.Reserve("m1", Reservation{CartID: "G", Lines: 1, Text: 3}, oneLine)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		note string
		b    Reservation
		want error
	}{
		"one line more":               {"m2", Reservation{CartID: "H", Lines: 1, Text: 0}, ErrNoRoom},
		"one byte more":               {"m2", Reservation{CartID: "H", Lines: 0, Text: 1}, ErrNoRoom},
		"nothing":                     {"m2", Reservation{CartID: "H", Lines: 0, Text: 0}, nil},
		"the same cart":               {"m2", Reservation{CartID: "G", Lines: 1, Text: 3}, nil},
		"the same cart, grown":        {"m2", Reservation{CartID: "G", Lines: 2, Text: 3}, ErrNoRoom},
		"another cart, the same name": {"m1", Reservation{CartID: "H", Lines: 1, Text: 3}, nil},
	} {
		if _, err := r.Reserve(test.note, test.b, oneLine); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two merges of two lines each may bring four lines to a cart that may have two, and then no
// change may add a fifth.
func TestChange_LeavesTheRoomThatMergesHaveReserved(t *testing.T) {
	t.Parallel()
	limits := Limits{Lines: 2, Quantity: 9, CartText: 2}
	add := func(notice string) Rule {
		return func(c Cart, reserved Room) (Cart, LineID, *Refusal) {
			c, refusal := c.Add(NewLine{ID: "1", Quantity: 1, Notice: notice, Bounds: Bounds{Stock: -1, Min: 1, Max: 9}}, limits.Beside(reserved))
			return c, "", refusal
		}
	}
	for name, test := range map[string]struct {
		merges map[string]Reservation
		notice string
		want   Verdict
	}{
		"room for a line":           {map[string]Reservation{"m1": {CartID: "G", Lines: 2, Text: 0}, "m2": {CartID: "H", Lines: 1, Text: 0}}, "", Applied},
		"all lines are reserved":    {map[string]Reservation{"m1": {CartID: "G", Lines: 2, Text: 0}, "m2": {CartID: "H", Lines: 2, Text: 0}}, "", Refused},
		"by two merges of one cart": {map[string]Reservation{"m1": {CartID: "G", Lines: 2, Text: 0}, "m2": {CartID: "G", Lines: 2, Text: 0}}, "", Applied},
		"room for text":             {map[string]Reservation{"m1": {CartID: "G", Lines: 1, Text: 2}, "m2": {CartID: "H", Lines: 1, Text: 0}}, "no", Applied},
		"text is reserved":          {map[string]Reservation{"m1": {CartID: "G", Lines: 1, Text: 2}, "m2": {CartID: "H", Lines: 1, Text: 1}}, "no", Refused},
	} {
		attempt := Attempt{PassBy: []string{"m1", "m2"}}
		if _, verdict, _, refusal := (Record{Merges: test.merges}).Change(attempt, "NEW", noon, add(test.notice)); verdict != test.want {
			t.Errorf("%s: %s %+v, want %s", name, verdict, refusal, test.want)
		}
	}
}

func TestReserve_TakesSoManyMergesAtOnce(t *testing.T) {
	t.Parallel()
	var r Record
	for i := range MaxMerges + 1 {
		var err error
		if r, err = r.Reserve(fmt.Sprintf("m%d", i), Reservation{CartID: "G"}, oneLine); errors.Is(err, ErrCrowded) != (i == MaxMerges) {
			t.Errorf("merge %d: %v", i, err)
		}
	}
	if _, err := r.Reserve("m0", Reservation{CartID: "G"}, oneLine); err != nil {
		t.Errorf("again under its own name: %v", err)
	}
	if _, err := r.Reserve("more", Reservation{CartID: "H", Lines: 3}, oneLine); !errors.Is(err, ErrNoRoom) {
		t.Errorf("one too many that does not fit: %v", err)
	}
	if _, err := r.Forget("m7").Reserve("more", Reservation{CartID: "H"}, oneLine); err != nil {
		t.Errorf("in the place of one forgotten: %v", err)
	}
}

func TestReservation_CoversWhatIsNoMore(t *testing.T) {
	t.Parallel()
	reserved := cartOf(Line{ID: "1", Notice: "n"}).Brings()
	for name, test := range map[string]struct {
		cart Cart
		want bool
	}{
		"the same":     {cartOf(Line{ID: "2", Notice: "m"}), true},
		"less":         {cartOf(), true},
		"a line more":  {cartOf(Line{ID: "1"}, Line{ID: "2"}), false},
		"a byte more":  {cartOf(Line{ID: "1", Notice: "né"}), false},
		"another cart": {Cart{ID: "D"}, false},
	} {
		if got := reserved.Covers(test.cart); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
