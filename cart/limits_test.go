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

var highestLimits = Limits{Lines: MaxLines, Quantity: MaxQuantity, LineText: MaxText, CartText: MaxText}

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
	got.Redeem(&Coupon{Code: "C", Kind: Percent, Rate: 1}, Uses{}, store, time.Now()) // 0.0001 %

	subtotal := new(big.Int).Mul(big.NewInt(MergeFactor*MaxLines*MaxQuantity), big.NewInt(int64(2*MaxPrice+MaxFields*MaxSurcharge)))
	assert.That(t, big.NewInt(int64(got.Subtotal)).Cmp(subtotal) == 0 && 2*got.Subtotal == highestTotal,
		"subtotal %d, want %d", got.Subtotal, subtotal)
	want := 2 * (got.Subtotal - got.Subtotal/1_000_000)
	assert.That(t, got.Total == want && got.Total >= 0, "total %d, want %d", got.Total, want)
	assert.Equal(t, string(money.AppendMajor(nil, got.Total, 3)), "8999991000000000", "the total is shown as")
}
