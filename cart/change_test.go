package cart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
	"commerce/deploy/assert"
)

var roomy = Limits{Lines: 10, Quantity: 99, CartText: 100}

// made is what a rule makes of a cart without merges under way.
func made(rule Rule, c Cart, limits Limits) Effect {
	return rule(&Cell{Cart: c}, limits, time.Unix(1_000_000, 0))
}

var anyQuantity = Bounds{Stock: -1, Min: 1, Max: 99}

func TestAdd_Refuses(t *testing.T) {
	t.Parallel()
	held := cartOf(Line{ID: "1", Quantity: 2, Notice: "four"}, Line{ID: "1.p1", Quantity: 3})
	for name, test := range map[string]struct {
		add    NewLine
		limits Limits
		want   *Refusal
	}{
		"one line too many":       {newLine("2", 1, anyQuantity), Limits{Lines: 2, CartText: 100}, &Refusal{Code: problem.CartFull}},
		"a line that is there":    {newLine("1", 1, anyQuantity), Limits{Lines: 2, CartText: 100}, nil},
		"below the minimum":       {newLine("1", 1, Bounds{Stock: -1, Min: 4, Max: 9}), roomy, &Refusal{Code: problem.QuantityOutOfRange}},
		"above the maximum":       {newLine("1", 2, Bounds{Stock: -1, Min: 1, Max: 3}), roomy, &Refusal{Code: problem.QuantityOutOfRange}},
		"at the maximum":          {newLine("1", 2, Bounds{Stock: -1, Min: 1, Max: 4}), roomy, nil},
		"out of stock":            {newLine("1", 1, Bounds{Stock: 0, Min: 1, Max: 9}), roomy, &Refusal{Code: problem.OutOfStock}},
		"above stock in all":      {newLine("1", 2, Bounds{Stock: 6, Min: 1, Max: 9}), roomy, &Refusal{Code: problem.InsufficientStock, Held: 5}},
		"all of the stock":        {newLine("1", 1, Bounds{Stock: 6, Min: 1, Max: 9}), roomy, nil},
		"too much text":           {NewLine{ID: "2", Quantity: 1, Notice: "six123", Bounds: anyQuantity}, Limits{Lines: 9, CartText: 9}, &Refusal{Code: TextFull}},
		"less text than there is": {NewLine{ID: "1", Quantity: 1, Notice: "two", Bounds: anyQuantity}, Limits{Lines: 9, CartText: 2}, nil},
	} {
		got := made(Add(test.add), held, test.limits)
		assert.Equal(t, got.Refusal, test.want, "%s", name)
		assert.That(t, got.Altered == (test.want == nil), "%s: altered %v", name, got.Altered)
	}
}

func TestSetQuantity(t *testing.T) {
	t.Parallel()
	held := cartOf(Line{ID: "1.p1", Quantity: 5}, Line{ID: "1", Quantity: 2}, Line{ID: "1.p2", Quantity: 1})
	for name, test := range map[string]struct {
		item     LineID
		quantity int64
		bounds   Bounds
		raise    problem.Code
		want     *Refusal
		alters   bool
	}{
		"no such item":                    {"2", 1, anyQuantity, "", &Refusal{Code: problem.ItemNotFound}, false},
		"the same":                        {"1", 2, anyQuantity, problem.ProductInactive, nil, false},
		"lower, of a product not sold":    {"1", 1, anyQuantity, problem.ProductInactive, nil, true},
		"higher, of a product not sold":   {"1", 3, anyQuantity, problem.ProductInactive, &Refusal{Code: problem.ProductInactive}, false},
		"lower, above the maximum":        {"1.p1", 4, Bounds{Stock: 0, Min: 1, Max: 3}, "", nil, true},
		"lower, below the minimum":        {"1", 1, Bounds{Stock: -1, Min: 2, Max: 9}, "", &Refusal{Code: problem.QuantityOutOfRange}, false},
		"the same, below the minimum":     {"1", 2, Bounds{Stock: -1, Min: 3, Max: 9}, "", nil, false},
		"removed, below the minimum":      {"1", 0, Bounds{Stock: 0, Min: 2, Max: 9}, problem.ProductNotFound, nil, true},
		"higher, out of stock":            {"1", 3, Bounds{Stock: 0, Min: 1, Max: 9}, "", &Refusal{Code: problem.OutOfStock}, false},
		"higher than the other lines let": {"1", 4, Bounds{Stock: 9, Min: 1, Max: 9}, "", &Refusal{Code: problem.InsufficientStock, Held: 6}, false},
		"lower, off its step":             {"1.p1", 4, Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", &Refusal{Code: OffStep}, false},
		"lower, on its step":              {"1.p1", 3, Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", nil, true},
		"the same, off its step":          {"1", 2, Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", nil, false},
		"higher, off its step":            {"1", 4, Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", &Refusal{Code: OffStep}, false},
		"higher than a cart may hold":     {"1", 3, Bounds{Stock: -1, PerCart: 8, Min: 1, Max: 9}, "", &Refusal{Code: AboveMaxPerCart, Held: 6}, false},
		"lower, above what a cart holds":  {"1", 1, Bounds{Stock: -1, PerCart: 2, Min: 1, Max: 9}, "", nil, true},
		"higher, all of the stock":        {"1", 3, Bounds{Stock: 9, Min: 1, Max: 9}, "", nil, true},
	} {
		got := made(SetQuantity(Item{ID: test.item}, test.quantity, test.bounds, test.raise), held, roomy)
		diff := cmp.Diff(test.want, got.Refusal)
		assert.That(t, diff == "" && got.Altered == test.alters, "%s: altered %v (-want +got)\n%s", name, got.Altered, diff)
	}
}

func newLine(id LineID, quantity int64, b Bounds) NewLine {
	return NewLine{ID: id, Quantity: quantity, Price: 500, Bounds: b}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	plan := func(n int64) LineID { return NewLineID(1, n, nil) }
	held := cartOf(
		Line{ID: plan(1), Quantity: 2, AddedPrice: 10, Notice: "one"},
		Line{ID: "2", Quantity: 1, AddedPrice: 20},
		Line{ID: plan(2), Quantity: 3, AddedPrice: 30, Notice: "two"},
	)
	one, two, three := held.Lines[0], held.Lines[1], held.Lines[2]
	for name, test := range map[string]struct {
		item LineID
		from Line // that item names
		edit func(*EditedLine)
		want []Line // nil for the cart as it is
		id   LineID
		why  *Refusal
	}{
		"another plan keeps the place": {
			plan(1), one, func(e *EditedLine) { e.ID = plan(3) },
			[]Line{{ID: plan(3), Quantity: 2, AddedPrice: 99, Notice: "one"}, two, three},
			plan(3), nil,
		},
		"a notice keeps the price": {
			"2", two, func(e *EditedLine) { e.Notice = "new" },
			[]Line{one, {ID: "2", Quantity: 1, AddedPrice: 20, Notice: "new"}, three},
			"2", nil,
		},
		"its metadata wins where it joins": {
			plan(2), three, func(e *EditedLine) { e.ID, e.Metadata = plan(1), Metadata{"a": "", "b": "y"} },
			[]Line{{ID: plan(1), Quantity: 5, AddedPrice: 10, Notice: "two", Metadata: Metadata{"b": "y"}}, two},
			plan(1), nil,
		},
		"an accepted price": {
			"2", two, func(e *EditedLine) { e.Accepts = true },
			[]Line{one, {ID: "2", Quantity: 1, AddedPrice: 99}, three},
			"2", nil,
		},
		"joins an earlier line": {
			plan(2), three, func(e *EditedLine) { e.ID = plan(1) },
			[]Line{{ID: plan(1), Quantity: 5, AddedPrice: 10, Notice: "two"}, two},
			plan(1), nil,
		},
		"joins a later line": {
			plan(1), one, func(e *EditedLine) { e.ID, e.Notice, e.Quantity = plan(2), "", new(int64(4)) },
			[]Line{two, {ID: plan(2), Quantity: 7, AddedPrice: 30, Notice: "two"}},
			plan(2), nil,
		},
		"the bounds apply to the sum": {
			plan(1), one, func(e *EditedLine) {
				e.ID, e.Quantity, e.Bounds = plan(2), new(int64(1)), Bounds{Stock: -1, Min: 2, Max: 4, Step: 2}
			},
			[]Line{two, {ID: plan(2), Quantity: 4, AddedPrice: 30, Notice: "one"}},
			plan(2), nil,
		},
		"nothing":                    {plan(1), one, func(*EditedLine) {}, nil, plan(1), nil},
		"no such line":               {plan(7), one, func(*EditedLine) {}, nil, "", &Refusal{Code: problem.ItemNotFound}},
		"more than a line may hold":  {plan(1), one, func(e *EditedLine) { e.ID, e.Bounds.Max = plan(2), 4 }, nil, "", &Refusal{Code: problem.QuantityOutOfRange}},
		"a sum between two steps":    {plan(1), one, func(e *EditedLine) { e.ID, e.Bounds.Step = plan(2), 3 }, nil, "", &Refusal{Code: OffStep}},
		"growth beyond the stock":    {plan(1), one, func(e *EditedLine) { e.Quantity, e.Bounds.Stock = new(int64(3)), 5 }, nil, "", &Refusal{Code: problem.InsufficientStock, Held: 3}},
		"growth of what is not sold": {plan(1), one, func(e *EditedLine) { e.Quantity, e.Raise = new(int64(3)), problem.ProductInactive }, nil, "", &Refusal{Code: problem.ProductInactive}},
	} {
		rule := EditLine(Item{ID: test.item}, func(l Line) (EditedLine, *problem.Error) {
			edited := EditedLine{From: l, ID: l.ID, Notice: l.Notice, Price: 99, Bounds: anyQuantity}
			test.edit(&edited)
			assert.Equal(t, l, test.from, "%s: the edited line", name)
			return edited, nil
		})
		got := made(rule, held, roomy)
		want := Effect{Refusal: test.why}
		if test.why == nil {
			want = Effect{Cart: held, Altered: test.want != nil, Line: test.id, Named: test.id == test.item}
		}
		if test.want != nil {
			want.Cart.Lines = test.want
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
