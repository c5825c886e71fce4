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
	r, err := r.Reserve("m1", Reservation{"G", 1, 3}, oneLine)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		note string
		b    Reservation
		want error
	}{
		"one line more":               {"m2", Reservation{"H", 1, 0}, ErrNoRoom},
		"one byte more":               {"m2", Reservation{"H", 0, 1}, ErrNoRoom},
		"nothing":                     {"m2", Reservation{"H", 0, 0}, nil},
		"the same cart":               {"m2", Reservation{"G", 1, 3}, nil},
		"the same cart, grown":        {"m2", Reservation{"G", 2, 3}, ErrNoRoom},
		"another cart, the same name": {"m1", Reservation{"H", 1, 3}, nil},
	} {
		if _, err := r.Reserve(test.note, test.b, oneLine); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
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
