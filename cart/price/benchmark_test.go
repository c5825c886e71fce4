package price_test

import (
	"fmt"
	"testing"
	"time"

	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/price"
	"commerce/deploy/assert"
)

func cartOf(lines int) (cart.Cart, map[int64]*cart.Product) {
	c, products := cart.Cart{ID: "CARTID", Version: 7}, map[int64]*cart.Product{}
	for i := range int64(lines) {
		p := carttest.Sold(9001+i, 1000)
		products[p.ID] = p
		c.Lines = append(c.Lines, cart.Line{ID: cart.NewLineID(p.ID, 0, nil), Quantity: 2, AddedPrice: 1000})
	}
	return c, products
}

var inSaudiArabia = &store.Store{ID: 1, Currency: "SAR", TaxRate: 150_000, PricesIncludeTax: true}

// BenchmarkPrice measures prices with tax, and with a coupon that is split among the lines.
func BenchmarkPrice(b *testing.B) {
	coupon := &price.Coupon{Code: "TEN", Kind: price.Percent, Rate: 100_000}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, lines := range []int{5, 50} {
		c, products := cartOf(lines)
		b.Run(fmt.Sprintf("%d lines", lines), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				price.Of(c, inSaudiArabia, products, carttest.Limits)
			}
		})
		b.Run(fmt.Sprintf("%d lines, coupon", lines), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := price.Of(c, inSaudiArabia, products, carttest.Limits)
				p.Redeem([]price.Offered{{Code: "TEN", Coupon: coupon}}, nil, inSaudiArabia, now)
			}
		})
	}
}

// The lines of a priced cart, and its lines of tax, are all that a price allocates, however many lines there are.
// Looking for warnings allocates nothing if there are none.
func TestPrice_AllocatesTwice(t *testing.T) {
	c, products := cartOf(50)
	n := testing.AllocsPerRun(100, func() {
		priced := price.Of(c, inSaudiArabia, products, carttest.Limits)
		price.Warnings(&priced)
	})
	assert.That(t, n <= 2, "%v allocations for %d lines", n, len(c.Lines))
}

func BenchmarkValidate(b *testing.B) {
	c, products := cartOf(50)
	p := price.Of(c, inSaudiArabia, products, carttest.Limits)
	b.ReportAllocs()
	for b.Loop() {
		price.Validate(&p)
	}
}
