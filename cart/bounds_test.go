package cart

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

func TestBoundsOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		product *Product
		want    Bounds
	}{
		"gone":                 {nil, Bounds{Stock: -1, Min: 1, Max: 999}},
		"no bounds of its own": {&Product{MinQuantity: 1}, Bounds{Stock: -1, Min: 1, Max: 999}},
		"no minimum given":     {&Product{}, Bounds{Stock: -1, Min: 1, Max: 999}},
		"its own":              {&Product{Stock: new(int64(3)), MinQuantity: 2, MaxQuantity: new(int64(5))}, Bounds{Stock: 3, Min: 2, Max: 5}},
		"max past the service": {&Product{MinQuantity: 1, MaxQuantity: new(int64(5000))}, Bounds{Stock: -1, Min: 1, Max: 999}},
		"sold out":             {&Product{Stock: new(int64)}, Bounds{Stock: 0, Min: 1, Max: 999}},
		"per cart and step":    {&Product{MinQuantity: 1, MaxPerCart: new(int64(4)), Step: 2}, Bounds{Stock: -1, PerCart: 4, Min: 1, Max: 999, Step: 2}},
		"oversold":             {&Product{Stock: new(int64(-4))}, Bounds{Stock: 0, Min: 1, Max: 999}},
	} {
		got := BoundsOf(tc.product, testLimits)
		assert.That(t, got == tc.want, "%s: %+v, want %+v", name, got, tc.want)
	}
}

// A line that cannot be bought at all keeps only the service's own limit.
func TestMergeBounds(t *testing.T) {
	t.Parallel()
	sells := func(stock *int64, active bool) *Product {
		return &Product{Active: active, Stock: stock, MinQuantity: 2, MaxQuantity: new(int64(5))}
	}
	guest := cartOf(Line{ID: "1"}, Line{ID: "1.p1"}, Line{ID: "2"}, Line{ID: "3"}, Line{ID: "4"})
	products := map[int64]*Product{1: sells(new(int64(9)), true), 2: sells(new(int64), true), 3: sells(nil, false)}
	sold, stopped := Bounds{Stock: 9, Min: 2, Max: 5}, Bounds{Stock: -1, Max: 999}
	want := map[LineID]Bounds{"1": sold, "1.p1": sold, "2": stopped, "3": stopped, "4": stopped}
	assert.Equal(t, MergeBounds(guest, products, testLimits), want, "result")
}

func cartOf(lines ...Line) Cart { return Cart{ID: "C", Version: 1, Mark: "M", Lines: lines} }

var highestLimits = Limits{Lines: MaxLines, Quantity: MaxQuantity, LineText: MaxLineText, CartText: MaxCartText}

// costliest returns a product with the highest prices and the maximum number of fields, and
// a line for it that chooses a surcharge in every field.
func costliest(id int64) (*Product, Line) {
	p := sold(id, MaxPrice)
	p.Plans = []Plan{{ID: 1, Duration: "monthly", Price: MaxPrice}}
	var answers []FieldValue
	for i := range MaxFields {
		name := fmt.Sprintf("field %02d", i)
		p.Fields = append(p.Fields, Field{Name: name, Options: []Option{{Code: "x", Name: locale.Named("X"), Price: MaxSurcharge}}})
		answers = append(answers, FieldValue{name, "x"})
	}
	return p, Line{ID: NewLineID(id, 1, answers), Quantity: MaxQuantity, Fields: answers}
}

// Only a merge fills a cart to MergeFactor × MaxLines.
func TestPrice_DoesNotOverflowAtTheMaximums(t *testing.T) {
	t.Parallel()
	products := map[int64]*Product{}
	var c Cart
	for id := range int64(MergeFactor * MaxLines) {
		p, line := costliest(id + 1)
		products[p.ID], c.Lines = p, append(c.Lines, line)
	}
	store := &store.Store{Currency: "KWD", TaxRate: MaxTaxRate}
	got := Price(c, store, products, highestLimits)
	got.redeemOne(&Coupon{Code: "C", Kind: Percent, Rate: 1}, Uses{}, store, time.Now()) // 0.0001 %

	subtotal := new(big.Int).Mul(big.NewInt(MergeFactor*MaxLines*MaxQuantity), big.NewInt(int64(2*MaxPrice+MaxFields*MaxSurcharge)))
	assert.That(t, big.NewInt(int64(got.Subtotal)).Cmp(subtotal) == 0 && 2*got.Subtotal == highestTotal,
		"subtotal %d, want %d", got.Subtotal, subtotal)
	want := 2 * (got.Subtotal - got.Subtotal/1_000_000)
	assert.That(t, got.Total == want && got.Total >= 0, "total %d, want %d", got.Total, want)
	assert.Equal(t, string(money.AppendMajor(nil, got.Total, 3)), "8999991000000000", "the total is shown as")
}
