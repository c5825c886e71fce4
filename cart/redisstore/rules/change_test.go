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
