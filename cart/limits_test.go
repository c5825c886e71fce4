package cart

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
)

var highestLimits = Limits{Lines: MaxLines, Quantity: MaxQuantity, LineText: MaxText, CartText: MaxText}

// costliest returns a product with the maximum number of fields and the given prices, and
// a line for it that chooses a surcharge in every field.
func costliest(id int64, base, plan, surcharge money.Amount, quantity int64) (*Product, Line) {
	p := sold(id, base)
	p.Plans = []Plan{{ID: 1, Duration: "monthly", Price: plan}}
	var answers []FieldValue
	for i := range MaxFields {
		name := fmt.Sprintf("field %02d", i)
		p.Fields = append(p.Fields, Field{Name: name, Options: []Option{{Code: "x", Name: locale.Named("X"), Price: surcharge}}})
		answers = append(answers, FieldValue{name, "x"})
	}
	return p, Line{ID: NewLineID(id, 1, answers), Quantity: quantity, Fields: answers}
}

// Only a merge fills a cart to MergeFactor × MaxLines.
func TestPrice_DoesNotOverflowAtTheMaximums(t *testing.T) {
	t.Parallel()
	products := map[int64]*Product{}
	var c Cart
	for id := range int64(MergeFactor * MaxLines) {
		p, line := costliest(id+1, MaxPrice, MaxPrice, MaxSurcharge, MaxQuantity)
		products[p.ID], c.Lines = p, append(c.Lines, line)
	}
	store := &store.Store{Currency: "KWD", TaxRate: MaxTaxRate}
	got := Price(c, store, products, highestLimits)
	got.Redeem(&Coupon{Code: "C", Kind: Percent, Rate: 1}, Uses{}, store, time.Now()) // 0.0001 %

	subtotal := new(big.Int).Mul(big.NewInt(MergeFactor*MaxLines*MaxQuantity), big.NewInt(int64(2*MaxPrice+MaxFields*MaxSurcharge)))
	if big.NewInt(int64(got.Subtotal)).Cmp(subtotal) != 0 || 2*got.Subtotal != highestTotal {
		t.Errorf("subtotal %d, want %d", got.Subtotal, subtotal)
	}
	if want := 2 * (got.Subtotal - got.Subtotal/1_000_000); got.Total != want || got.Total < 0 {
		t.Errorf("total %d, want %d", got.Total, want)
	}
	if text, want := string(money.AppendMajor(nil, got.Total, 3)), "8999991000000000"; text != want {
		t.Errorf("the total is shown as %s, want %s", text, want)
	}
}

// Within the bounds, every amount equals the one that big.Int computes.
func TestPrice_IsExactWithinTheBounds(t *testing.T) {
	t.Parallel()
	amount := func(t *rapid.T, name string, maximum money.Amount) money.Amount {
		return money.Amount(rapid.OneOf(rapid.Int64Range(0, int64(maximum)), rapid.Just(int64(maximum))).Draw(t, name))
	}
	rapid.Check(t, func(t *rapid.T) {
		products, subtotal := map[int64]*Product{}, new(big.Int)
		var c Cart
		for id := range rapid.Int64Range(0, 20).Draw(t, "lines") {
			quantity := rapid.OneOf(rapid.Int64Range(1, MaxQuantity), rapid.Just(int64(MaxQuantity))).Draw(t, "quantity")
			base, plan, surcharge := amount(t, "base", MaxPrice), amount(t, "plan", MaxPrice), amount(t, "surcharge", MaxSurcharge)
			p, line := costliest(id+1, base, plan, surcharge, quantity)
			products[p.ID], c.Lines = p, append(c.Lines, line)
			unit := new(big.Int).Mul(big.NewInt(MaxFields), big.NewInt(int64(surcharge)))
			unit.Add(unit, big.NewInt(int64(base))).Add(unit, big.NewInt(int64(plan)))
			subtotal.Add(subtotal, unit.Mul(unit, big.NewInt(quantity)))
		}
		store := &store.Store{
			Currency: "SAR", TaxRate: rapid.Int64Range(0, MaxTaxRate).Draw(t, "tax"),
			PricesIncludeTax: rapid.Bool().Draw(t, "included"),
		}
		coupon := &Coupon{Code: "C", Kind: Percent, Rate: rapid.Int64Range(1, 1_000_000).Draw(t, "percent")}
		got := Price(c, store, products, highestLimits)
		got.Redeem(coupon, Uses{}, store, time.Now())

		discount := nearest(subtotal, coupon.Rate, 1_000_000)
		rest := new(big.Int).Sub(subtotal, discount)
		tax, total := nearest(rest, store.TaxRate, 1_000_000+store.TaxRate), rest
		if !store.PricesIncludeTax {
			tax = nearest(rest, store.TaxRate, 1_000_000)
			total = new(big.Int).Add(rest, tax)
		}
		for name, pair := range map[string]struct {
			got  money.Amount
			want *big.Int
		}{
			"subtotal": {got.Subtotal, subtotal}, "discount": {got.Discount, discount}, "tax": {got.Tax, tax}, "total": {got.Total, total},
		} {
			if big.NewInt(int64(pair.got)).Cmp(pair.want) != 0 {
				t.Fatalf("%s %d, want %d", name, pair.got, pair.want)
			}
		}
	})
}

// nearest returns a × part / whole, rounded half up. a must not be negative.
func nearest(a *big.Int, part, whole int64) *big.Int {
	twice := new(big.Int).Mul(a, big.NewInt(2*part))
	return twice.Add(twice, big.NewInt(whole)).Quo(twice, big.NewInt(2*whole))
}
