package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
	"commerce/cart"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	plan := func(n int64) cart.LineID { return cart.NewLineID(1, n, nil) }
	held := cartOf(
		cart.Line{ID: plan(1), Quantity: 2, AddedPrice: 10, Notice: "one"},
		cart.Line{ID: "2", Quantity: 1, AddedPrice: 20},
		cart.Line{ID: plan(2), Quantity: 3, AddedPrice: 30, Notice: "two"},
	)
	one, two, three := held.Lines[0], held.Lines[1], held.Lines[2]
	for name, test := range map[string]struct {
		item  cart.LineID
		from  cart.Line
		edit  func(*cart.EditedLine)
		want  []cart.Line // nil for the cart as it is
		moved cart.LineID
		why   *cart.Refusal
	}{
		"another plan keeps the place": {
			plan(1), one, func(e *cart.EditedLine) { e.ID = plan(3) },
			[]cart.Line{{ID: plan(3), Quantity: 2, AddedPrice: 99, Notice: "one"}, two, three},
			plan(3), nil,
		},
		"a notice keeps the price": {
			"2", two, func(e *cart.EditedLine) { e.Notice = "new" },
			[]cart.Line{one, {ID: "2", Quantity: 1, AddedPrice: 20, Notice: "new"}, three},
			"", nil,
		},
		"joins an earlier line": {
			plan(2), three, func(e *cart.EditedLine) { e.ID = plan(1) },
			[]cart.Line{{ID: plan(1), Quantity: 5, AddedPrice: 10, Notice: "two"}, two},
			plan(1), nil,
		},
		"joins a later line": {
			plan(1), one, func(e *cart.EditedLine) { e.ID, e.Notice, e.Quantity = plan(2), "", new(int64(4)) },
			[]cart.Line{two, {ID: plan(2), Quantity: 7, AddedPrice: 30, Notice: "two"}},
			plan(2), nil,
		},
		"the bounds apply to the sum": {
			plan(1), one, func(e *cart.EditedLine) {
				e.ID, e.Quantity, e.Bounds = plan(2), new(int64(1)), cart.Bounds{Stock: -1, Min: 2, Max: 4, Step: 2}
			},
			[]cart.Line{two, {ID: plan(2), Quantity: 4, AddedPrice: 30, Notice: "one"}},
			plan(2), nil,
		},
		"a product names its first line": {
			"1", one, func(e *cart.EditedLine) { e.Notice = "" },
			[]cart.Line{{ID: plan(1), Quantity: 2, AddedPrice: 10}, two, three},
			plan(1), nil,
		},
		"nothing":                    {plan(1), one, func(*cart.EditedLine) {}, nil, "", nil},
		"no such line":               {plan(7), one, func(*cart.EditedLine) {}, nil, "", &cart.Refusal{Code: problem.ItemNotFound}},
		"read with another notice":   {plan(1), one, func(e *cart.EditedLine) { e.From.Notice = "old" }, nil, "", &cart.Refusal{Code: cart.LineChanged}},
		"another line is the first":  {"1", three, func(*cart.EditedLine) {}, nil, "", &cart.Refusal{Code: cart.LineChanged}},
		"more than a line may hold":  {plan(1), one, func(e *cart.EditedLine) { e.ID, e.Bounds.Max = plan(2), 4 }, nil, "", &cart.Refusal{Code: problem.QuantityOutOfRange}},
		"a sum between two steps":    {plan(1), one, func(e *cart.EditedLine) { e.ID, e.Bounds.Step = plan(2), 3 }, nil, "", &cart.Refusal{Code: cart.OffStep}},
		"growth beyond the stock":    {plan(1), one, func(e *cart.EditedLine) { e.Quantity, e.Bounds.Stock = new(int64(3)), 5 }, nil, "", &cart.Refusal{Code: problem.InsufficientStock, Held: 3}},
		"growth of what is not sold": {plan(1), one, func(e *cart.EditedLine) { e.Quantity, e.Raise = new(int64(3)), problem.ProductInactive }, nil, "", &cart.Refusal{Code: problem.ProductInactive}},
	} {
		edited := cart.EditedLine{From: test.from, ID: test.from.ID, Notice: test.from.Notice, Price: 99, Bounds: anyQuantity}
		test.edit(&edited)
		want := held
		if test.want != nil {
			want.Lines, want.Version = test.want, held.Version+1
		}
		got, moved, refusal := Edit(held, test.item, edited, roomy)
		if diff := cmp.Diff(want, got); diff != "" || moved != test.moved || !cmp.Equal(test.why, refusal) {
			t.Errorf("%s: %+v, want %+v; moved to %q (-want +got)\n%s", name, refusal, test.why, moved, diff)
		}
	}
}
