package price

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
)

// A bookkeeper can follow these carts: a store in Saudi Arabia, with a tax of 15 % at home, sells each product for 100.00.
func TestPrice_TaxesByTheBuyersCountry(t *testing.T) {
	t.Parallel()
	rates := store.TaxRates{
		"DE": {store.StandardTax: 190_000, "e-book": 70_000},
		"FI": {store.StandardTax: 255_000},
		"IE": {"e-book": 0},
	}
	class := func(id int64, class string, own *int64) *cart.Product {
		p := carttest.Sold(id, 10_000)
		p.TaxClass, p.TaxRate = class, own
		return p
	}
	products := map[int64]*cart.Product{
		1: class(1, store.StandardTax, nil),
		2: class(2, "e-book", nil),
		3: class(3, store.StandardTax, new(int64(0))),      // a gift card
		4: class(4, store.StandardTax, new(int64(50_000))), // a lower rate at home
		5: class(5, "e-book", new(int64(0))),               // untaxed at home alone
		6: class(6, "course", nil),                         // no country has a rate for it
	}
	for name, test := range map[string]struct {
		buyer, home string
		lines       []cart.LineID
		included    bool
		want        []TaxLine
		total       money.Amount
	}{
		"nobody knows":                    {"", "SA", []cart.LineID{"1", "2"}, true, []TaxLine{{150_000, 17_391, 2609}}, 20_000},
		"at home":                         {"SA", "SA", []cart.LineID{"1", "4"}, true, []TaxLine{{150_000, 8696, 1304}, {50_000, 9524, 476}}, 20_000},
		"at home, on top":                 {"SA", "SA", []cart.LineID{"1", "4"}, false, []TaxLine{{150_000, 10_000, 1500}, {50_000, 10_000, 500}}, 22_000},
		"a store without a country":       {"DE", "", []cart.LineID{"1", "2"}, true, []TaxLine{{150_000, 17_391, 2609}}, 20_000},
		"in Germany":                      {"DE", "SA", []cart.LineID{"1"}, true, []TaxLine{{190_000, 8403, 1597}}, 10_000},
		"in Germany, on top":              {"DE", "SA", []cart.LineID{"1"}, false, []TaxLine{{190_000, 10_000, 1900}}, 11_900},
		"two classes":                     {"DE", "SA", []cart.LineID{"1", "2"}, true, []TaxLine{{190_000, 8403, 1597}, {70_000, 9346, 654}}, 20_000},
		"two classes, on top":             {"DE", "SA", []cart.LineID{"1", "2"}, false, []TaxLine{{190_000, 10_000, 1900}, {70_000, 10_000, 700}}, 22_600},
		"a gift card":                     {"DE", "SA", []cart.LineID{"3"}, true, []TaxLine{{0, 10_000, 0}}, 10_000},
		"a gift card and more":            {"DE", "SA", []cart.LineID{"3", "1"}, false, []TaxLine{{190_000, 10_000, 1900}, {0, 10_000, 0}}, 21_900},
		"a rate of its own holds at home": {"DE", "SA", []cart.LineID{"4"}, true, []TaxLine{{190_000, 8403, 1597}}, 10_000},
		"untaxed at home alone":           {"DE", "SA", []cart.LineID{"5"}, true, []TaxLine{{70_000, 9346, 654}}, 10_000},
		"a class that has no rate":        {"DE", "SA", []cart.LineID{"6"}, true, []TaxLine{{190_000, 8403, 1597}}, 10_000},
		"half a percent":                  {"FI", "SA", []cart.LineID{"1", "2"}, false, []TaxLine{{255_000, 20_000, 5100}}, 25_100},
		"only another class":              {"IE", "SA", []cart.LineID{"1", "2"}, true, []TaxLine{{0, 20_000, 0}}, 20_000},
		"a country without rates":         {"JP", "SA", []cart.LineID{"1", "2"}, true, []TaxLine{{0, 20_000, 0}}, 20_000},
		"a country without rates, on top": {"JP", "SA", []cart.LineID{"1"}, false, []TaxLine{{0, 10_000, 0}}, 10_000},
		"a German store":                  {"DE", "DE", []cart.LineID{"1", "2"}, true, []TaxLine{{150_000, 17_391, 2609}}, 20_000},
		"an empty cart":                   {"DE", "SA", nil, true, nil, 0},
	} {
		s := &store.Store{Currency: "SAR", TaxRate: 150_000, PricesIncludeTax: test.included, Country: test.home, TaxRates: rates}
		c := cart.Cart{Buyer: cart.Buyer{Country: test.buyer}}
		for _, id := range test.lines {
			c.Lines = append(c.Lines, cart.Line{ID: id, Quantity: 1})
		}
		got := Of(c, s, products, carttest.Limits)
		if diff := cmp.Diff(test.want, got.TaxLines); diff != "" || got.Total != test.total {
			t.Errorf("%s: total %d, want %d, tax (-want +got):\n%s", name, got.Total, test.total, diff)
		}
	}
}
