package carttest

import (
	"fmt"

	"commerce/cart"
	"commerce/cart/money"
)

// Sold is a product of unlimited stock.
func Sold(id int64, price money.Amount) *cart.Product {
	return &cart.Product{ID: id, Name: fmt.Sprintf("P%d", id), Active: true, MinQuantity: 1, Price: price, OriginalPrice: price}
}

// Account is a product that asks for everything: a plan and answers.
func Account() *cart.Product {
	return &cart.Product{
		ID: 5, Name: "Account", Active: true, MinQuantity: 1, Price: 1500,
		Plans: []cart.Plan{{ID: 51, Duration: "monthly", Price: 2000}, {ID: 52, Duration: "annually", Price: 20000}},
		Fields: []cart.Field{
			{Name: "email", Required: true},
			{Name: "region", Options: []cart.Option{{Code: "sa", Name: "Saudi Arabia"}, {Code: "us", Name: "United States", Price: 525}}},
		},
	}
}

// Limits are those of an installation that sets none.
var Limits = cart.Limits{Lines: 100, Quantity: 999, LineText: 4096, CartText: 65536}
