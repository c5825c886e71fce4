package cart

import (
	"testing"
	"time"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

// A second click, or a proxy that repeats a DELETE by itself, must not remove another line.
func TestItem_NamesNoOtherLineOnceItsOwnIsRemoved(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	bare, other := Line{ID: "801", Quantity: 1}, Line{ID: "801.fAAAAAAAAAAAAAAAA", Quantity: 2}
	r := Request{Change: Change{Rule: Remove(Item{ID: "801"})}, Mark: "M", TTL: time.Hour}
	removed := r.Decide(Cell{Cart: cartOf(bare, other)}, at).Cell
	assert.Equal(t, removed.Lines, []Line{other}, "after the first click")

	for name, test := range map[string]struct {
		item  Item
		after time.Duration
		want  problem.Code // "": it is removed
	}{
		"again":                    {Item{ID: "801"}, time.Second, problem.ItemNotFound},
		"again, almost too late":   {Item{ID: "801"}, 5 * time.Minute, problem.ItemNotFound},
		"a new click":              {Item{ID: "801"}, 5*time.Minute + time.Second, ""},
		"the other line by its ID": {Item{ID: other.ID}, time.Second, ""},
		"a product in a list":      {Item{ID: "801", OnlyIDs: true}, time.Hour, problem.ItemNotFound},
		"another product":          {Item{ID: "80"}, time.Hour, problem.ItemNotFound},
		"no line can have this ID": {Item{}, time.Hour, problem.ItemNotFound},
		"a plan that is not there": {Item{ID: "801.p1"}, time.Hour, problem.ItemNotFound},
		"the other one, in a list": {Item{ID: other.ID, OnlyIDs: true}, time.Second, ""},
	} {
		_, none := test.item.in(&removed, at.Add(test.after))
		var got problem.Code
		if none != nil {
			got = none.Code
		}
		assert.Equal(t, got, test.want, "%s", name)
	}
}

func TestItem_NamesAProductOnlyIfOneLineHasIt(t *testing.T) {
	t.Parallel()
	two := Cell{Cart: cartOf(Line{ID: "4.p41", Quantity: 1}, Line{ID: "4.p42", Quantity: 1}, Line{ID: "41", Quantity: 1})}
	for _, rule := range []Rule{Remove(Item{ID: "4"}), SetQuantity(Item{ID: "4"}, 0, anyQuantity, ""), SetQuantity(Item{ID: "4"}, 2, anyQuantity, "")} {
		assert.Equal(t, rule(&two, roomy, time.Now()).Refusal, &Refusal{Code: AmbiguousItem}, "two lines")
	}
	one := Cell{Cart: cartOf(Line{ID: "4.p41", Quantity: 1}, Line{ID: "41", Quantity: 1})}
	assert.Equal(t, Remove(Item{ID: "4"})(&one, roomy, time.Now()).Cart.Lines, one.Lines[1:], "one line")
}

// An edit that joins the bare line to another one takes its ID away too.
func TestItem_RemembersWhatEveryChangeRemoves(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	bare, other, third := Line{ID: "801", Quantity: 1}, Line{ID: "801.p1", Quantity: 2}, Line{ID: "9", Quantity: 1}
	joins := EditLine(Item{ID: "801"}, func(l Line) (EditedLine, *problem.Error) {
		return EditedLine{From: l, ID: other.ID, Bounds: anyQuantity}, nil
	})
	for name, rule := range map[string]Rule{
		"DELETE":       Remove(Item{ID: "801"}),
		"PATCH with 0": SetQuantity(Item{ID: "801"}, 0, Bounds{}, ""),
		"a join":       joins,
		"a list":       List(true, []Rule{Remove(Item{ID: "9"}), Remove(Item{ID: "801", OnlyIDs: true})}),
	} {
		r := Request{Change: Change{Rule: rule}, Mark: "M", TTL: time.Hour, Limits: roomy}
		after := r.Decide(Cell{Cart: cartOf(bare, other, third)}, at).Cell
		assert.That(t, after.Removed.Has("801", at), "%s: %+v", name, after.Removed)
	}
	r := Request{Change: Change{Rule: Remove(Item{ID: "9"})}, Mark: "M", TTL: time.Hour}
	alone := r.Decide(Cell{Cart: cartOf(bare, other, third)}, at).Cell
	assert.That(t, len(alone.Removed) == 0, "an only line is remembered: %+v", alone.Removed)
}
