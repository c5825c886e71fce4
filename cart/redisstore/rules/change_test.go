package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/deploy/assert"
)

var roomy = cart.Limits{Lines: 10, Quantity: 99, CartText: 100}

func cartOf(lines ...cart.Line) cart.Cart {
	return cart.Cart{ID: "C", Version: 1, Mark: "M", Lines: lines}
}

var anyQuantity = cart.Bounds{Stock: -1, Min: 1, Max: 99}

func TestAdd_Refuses(t *testing.T) {
	t.Parallel()
	held := cartOf(cart.Line{ID: "1", Quantity: 2, Notice: "four"}, cart.Line{ID: "1.p1", Quantity: 3})
	for name, test := range map[string]struct {
		add    cart.NewLine
		limits cart.Limits
		want   *cart.Refusal
	}{
		"one line too many":       {newLine("2", 1, anyQuantity), cart.Limits{Lines: 2, CartText: 100}, &cart.Refusal{Code: problem.CartFull}},
		"a line that is there":    {newLine("1", 1, anyQuantity), cart.Limits{Lines: 2, CartText: 100}, nil},
		"below the minimum":       {newLine("1", 1, cart.Bounds{Stock: -1, Min: 4, Max: 9}), roomy, &cart.Refusal{Code: problem.QuantityOutOfRange}},
		"above the maximum":       {newLine("1", 2, cart.Bounds{Stock: -1, Min: 1, Max: 3}), roomy, &cart.Refusal{Code: problem.QuantityOutOfRange}},
		"at the maximum":          {newLine("1", 2, cart.Bounds{Stock: -1, Min: 1, Max: 4}), roomy, nil},
		"out of stock":            {newLine("1", 1, cart.Bounds{Stock: 0, Min: 1, Max: 9}), roomy, &cart.Refusal{Code: problem.OutOfStock}},
		"above stock in all":      {newLine("1", 2, cart.Bounds{Stock: 6, Min: 1, Max: 9}), roomy, &cart.Refusal{Code: problem.InsufficientStock, Held: 5}},
		"all of the stock":        {newLine("1", 1, cart.Bounds{Stock: 6, Min: 1, Max: 9}), roomy, nil},
		"too much text":           {cart.NewLine{ID: "2", Quantity: 1, Notice: "six123", Bounds: anyQuantity}, cart.Limits{Lines: 9, CartText: 9}, &cart.Refusal{Code: cart.TextFull}},
		"less text than there is": {cart.NewLine{ID: "1", Quantity: 1, Notice: "two", Bounds: anyQuantity}, cart.Limits{Lines: 9, CartText: 2}, nil},
	} {
		got, refusal := Add(held, test.add, test.limits)
		assert.Equal(t, refusal, test.want, "%s", name)
		assert.That(t, refusal == nil || cmp.Equal(got, held), "%s: it was refused and changed the cart to %+v", name, got)
	}
}

func TestSetQuantity(t *testing.T) {
	t.Parallel()
	held := cartOf(cart.Line{ID: "1.p1", Quantity: 5}, cart.Line{ID: "1", Quantity: 2}, cart.Line{ID: "1.p2", Quantity: 1})
	for name, test := range map[string]struct {
		item     cart.LineID
		quantity int64
		bounds   cart.Bounds
		raise    problem.Code
		want     *cart.Refusal
		version  int64
	}{
		"no such item":                    {"2", 1, anyQuantity, "", &cart.Refusal{Code: problem.ItemNotFound}, 1},
		"the same":                        {"1", 2, anyQuantity, problem.ProductInactive, nil, 1},
		"lower, of a product not sold":    {"1", 1, anyQuantity, problem.ProductInactive, nil, 2},
		"higher, of a product not sold":   {"1", 3, anyQuantity, problem.ProductInactive, &cart.Refusal{Code: problem.ProductInactive}, 1},
		"lower, above the maximum":        {"1.p1", 4, cart.Bounds{Stock: 0, Min: 1, Max: 3}, "", nil, 2},
		"lower, below the minimum":        {"1", 1, cart.Bounds{Stock: -1, Min: 2, Max: 9}, "", &cart.Refusal{Code: problem.QuantityOutOfRange}, 1},
		"the same, below the minimum":     {"1", 2, cart.Bounds{Stock: -1, Min: 3, Max: 9}, "", nil, 1},
		"removed, below the minimum":      {"1", 0, cart.Bounds{Stock: 0, Min: 2, Max: 9}, problem.ProductNotFound, nil, 2},
		"higher, out of stock":            {"1", 3, cart.Bounds{Stock: 0, Min: 1, Max: 9}, "", &cart.Refusal{Code: problem.OutOfStock}, 1},
		"higher than the other lines let": {"1", 4, cart.Bounds{Stock: 9, Min: 1, Max: 9}, "", &cart.Refusal{Code: problem.InsufficientStock, Held: 6}, 1},
		"lower, off its step":             {"1.p1", 4, cart.Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", &cart.Refusal{Code: cart.OffStep}, 1},
		"lower, on its step":              {"1.p1", 3, cart.Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", nil, 2},
		"the same, off its step":          {"1", 2, cart.Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", nil, 1},
		"higher, off its step":            {"1", 4, cart.Bounds{Stock: -1, Min: 1, Max: 9, Step: 2}, "", &cart.Refusal{Code: cart.OffStep}, 1},
		"higher than a cart may hold":     {"1", 3, cart.Bounds{Stock: -1, PerCart: 8, Min: 1, Max: 9}, "", &cart.Refusal{Code: cart.AboveMaxPerCart, Held: 6}, 1},
		"lower, above what a cart holds":  {"1", 1, cart.Bounds{Stock: -1, PerCart: 2, Min: 1, Max: 9}, "", nil, 2},
		"higher, all of the stock":        {"1", 3, cart.Bounds{Stock: 9, Min: 1, Max: 9}, "", nil, 2},
	} {
		got, _, refusal := SetQuantity(held, test.item, test.quantity, test.bounds, test.raise)
		diff := cmp.Diff(test.want, refusal)
		assert.That(t, diff == "" && got.Version == test.version, "%s: version %d (-want +got)\n%s", name, got.Version, diff)
	}
}

func newLine(id cart.LineID, quantity int64, b cart.Bounds) cart.NewLine {
	return cart.NewLine{ID: id, Quantity: quantity, Price: 500, Bounds: b}
}

func TestBounds_Cut(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bounds               cart.Bounds
		wanted, held, others int64
		kept                 int64
		by                   problem.Code
	}{
		"fits":                                {cart.Bounds{Stock: 9, PerCart: 9, Min: 1, Max: 9, Step: 1}, 5, 2, 4, 5, ""},
		"the line's maximum":                  {cart.Bounds{Stock: -1, Min: 1, Max: 4}, 5, 2, 0, 4, cart.AboveMaxQuantity},
		"the maximum per cart":                {cart.Bounds{Stock: -1, PerCart: 6, Min: 1, Max: 9}, 5, 2, 3, 3, cart.AboveMaxQuantity},
		"stock":                               {cart.Bounds{Stock: 6, PerCart: 8, Min: 1, Max: 9}, 5, 2, 3, 3, problem.InsufficientStock},
		"stock, then down to a step":          {cart.Bounds{Stock: 6, Min: 1, Max: 9, Step: 2}, 5, 2, 2, 3, problem.InsufficientStock},
		"down to a step":                      {cart.Bounds{Stock: -1, Min: 3, Max: 9, Step: 2}, 6, 3, 0, 5, cart.OffStep},
		"no steps below the minimum":          {cart.Bounds{Stock: -1, Min: 5, Max: 9, Step: 5}, 4, 2, 0, 4, ""},
		"never below the customer's":          {cart.Bounds{Stock: 1, Min: 1, Max: 9}, 5, 3, 2, 3, problem.InsufficientStock},
		"never below the customer's, by step": {cart.Bounds{Stock: -1, Min: 1, Max: 9, Step: 5}, 4, 4, 0, 4, ""},
		"never to nothing":                    {cart.Bounds{Stock: 1, Min: 1, Max: 9}, 2, 0, 5, 1, problem.InsufficientStock},
	} {
		kept, by := cut(tc.bounds, tc.wanted, tc.held, tc.others)
		assert.That(t, kept == tc.kept && by == tc.by, "%s: kept %d, cut by %q, want %d, %q", name, kept, by, tc.kept, tc.by)
	}
}

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
		item cart.LineID
		from cart.Line
		edit func(*cart.EditedLine)
		want []cart.Line // nil for the cart as it is
		id   cart.LineID
		why  *cart.Refusal
	}{
		"another plan keeps the place": {
			plan(1), one, func(e *cart.EditedLine) { e.ID = plan(3) },
			[]cart.Line{{ID: plan(3), Quantity: 2, AddedPrice: 99, Notice: "one"}, two, three},
			plan(3), nil,
		},
		"a notice keeps the price": {
			"2", two, func(e *cart.EditedLine) { e.Notice = "new" },
			[]cart.Line{one, {ID: "2", Quantity: 1, AddedPrice: 20, Notice: "new"}, three},
			"2", nil,
		},
		"its metadata wins where it joins": {
			plan(2), three, func(e *cart.EditedLine) { e.ID, e.Metadata = plan(1), cart.Metadata{"a": "", "b": "y"} },
			[]cart.Line{{ID: plan(1), Quantity: 5, AddedPrice: 10, Notice: "two", Metadata: cart.Metadata{"b": "y"}}, two},
			plan(1), nil,
		},
		"an accepted price": {
			"2", two, func(e *cart.EditedLine) { e.Accepts = true },
			[]cart.Line{one, {ID: "2", Quantity: 1, AddedPrice: 99}, three},
			"2", nil,
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
		"nothing":                    {plan(1), one, func(*cart.EditedLine) {}, nil, plan(1), nil},
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
		got, id, refusal := Edit(held, test.item, edited, roomy)
		if diff := cmp.Diff(want, got); diff != "" || id != test.id || !cmp.Equal(test.why, refusal) {
			t.Errorf("%s: %+v, want %+v; line %q (-want +got)\n%s", name, refusal, test.why, id, diff)
		}
	}
}
