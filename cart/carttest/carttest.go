// Package carttest has products and limits for tests, and makes carts in Redis older.
package carttest

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
)

// Sold returns a product with unlimited stock.
func Sold(id int64, price money.Amount) *cart.Product {
	return &cart.Product{ID: id, Name: locale.Named(fmt.Sprintf("P%d", id)), Active: true, MinQuantity: 1, Price: price, OriginalPrice: price}
}

// Account returns a product that has plans and fields.
func Account() *cart.Product {
	return &cart.Product{
		ID: 5, Name: locale.Named("Account"), Active: true, MinQuantity: 1, Price: 1500,
		Plans: []cart.Plan{{ID: 51, Duration: "monthly", Price: 2000}, {ID: 52, Duration: "annually", Price: 20000}},
		Fields: []cart.Field{
			{Name: "email", Required: true},
			{Name: "region", Options: []cart.Option{{Code: "sa", Name: locale.Named("Saudi Arabia")}, {Code: "us", Name: locale.Named("United States"), Price: 525}}},
		},
	}
}

// Limits are the defaults of an installation.
var Limits = cart.Limits{Lines: 100, Quantity: 999, LineText: cart.MaxLineText, CartText: cart.MaxCartText}

//go:embed age.lua
var ageLua string

// Age makes the carts under keys older, one after the other, as if they had been written earlier by
// that duration. Tests need it because Redis' clock cannot be set.
func Age(ctx context.Context, client redis.UniversalClient, by time.Duration, keys ...string) error {
	for _, key := range keys {
		if err := client.Eval(ctx, ageLua, []string{key}, by.Milliseconds()).Err(); err != nil && err != redis.Nil {
			return fmt.Errorf("age %s: %w", key, err)
		}
	}
	return nil
}
