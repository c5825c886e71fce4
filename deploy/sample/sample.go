// Package sample holds the data of the demo and of `commerce seed`: two small stores,
// and a generator of synthetic subscriptions.
package sample

import (
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
)

// Stores returns the stores. Each call returns new values.
func Stores() []*store.Store {
	payment := []store.PaymentMethod{
		{ID: "mada", Name: locale.Text{locale.En: "mada", locale.Ar: "مدى"}, Enabled: true},
		{ID: "card", Name: locale.Text{locale.En: "Credit card", locale.Ar: "بطاقة ائتمان"}, Enabled: true},
		{ID: "apple_pay", Name: locale.Text{locale.En: "Apple Pay", locale.Ar: "Apple Pay"}, Enabled: true},
	}
	return []*store.Store{
		{
			ID: 1, Name: "Riyadh Digital", PublicKeys: []string{"pk_demo"}, Currency: "SAR", Locale: locale.En,
			TaxRate: 150_000, PricesIncludeTax: true, PaymentMethods: payment,
		},
		{
			ID: 2, Name: "Second Store", PublicKeys: []string{"pk_demo2"}, Currency: "USD", Locale: locale.En,
			PricesIncludeTax: true, PaymentMethods: payment[1:],
		},
	}
}

// Products returns the products of each store by the store's id.
func Products() map[int64][]*cart.Product {
	return map[int64][]*cart.Product{
		1: {
			product(1, "Game credit", "game-credit", "digital", 4950),
			stocked(product(2, "Gift card", "gift-card", "digital", 1000), 3),
			inactive(product(3, "Old wallpaper pack", "old-wallpaper-pack", "digital", 500)),
			{
				ID: 4, Name: locale.Named("Pro membership"), Slug: "pro-membership", Type: "subscription", Active: true, MinQuantity: 1,
				Image: image("pro-membership", "Pro membership"),
				Plans: []cart.Plan{
					{ID: 41, Duration: period.Monthly, Price: 2000},
					{ID: 42, Duration: period.Annually, Price: 20000},
				},
			},
			{
				ID: 5, Name: locale.Named("Streaming account"), Slug: "streaming-account", Type: "digital", Active: true, MinQuantity: 1,
				Price: 1500, OriginalPrice: 1500, Image: image("streaming-account", "Streaming account"),
				Fields: []cart.Field{
					{Name: "Account email", Required: true},
					{Name: "Region", Options: []cart.Option{
						{Code: "sa", Name: locale.Named("Saudi Arabia")},
						{Code: "us", Name: locale.Named("United States"), Price: 525},
					}},
				},
			},
			stocked(product(6, "Limited skin", "limited-skin", "digital", 777), 0),
			limited(product(7, "Loot box", "loot-box", "digital", 333), 2, 5),
		},
		2: {
			product(21, "E-book", "e-book", "digital", 1200),
			{
				ID: 22, Name: locale.Named("Magazine"), Slug: "magazine", Type: "subscription", Active: true, MinQuantity: 1,
				Image: image("magazine", "Magazine"),
				Plans: []cart.Plan{{ID: 221, Duration: period.Monthly, Price: 499}},
			},
		},
	}
}

func product(id int64, name, slug, kind string, price money.Amount) *cart.Product {
	return &cart.Product{
		ID: id, Name: locale.Named(name), Slug: slug, Type: kind, Active: true, MinQuantity: 1,
		Price: price, OriginalPrice: price, Image: image(slug, name),
	}
}

func stocked(p *cart.Product, stock int64) *cart.Product {
	p.Stock = &stock
	return p
}

func inactive(p *cart.Product) *cart.Product {
	p.Active = false
	return p
}

func limited(p *cart.Product, minimum, maximum int64) *cart.Product {
	p.MinQuantity, p.MaxQuantity = minimum, &maximum
	return p
}

func image(slug, alt string) *cart.Image {
	return &cart.Image{URL: "https://cdn.example.com/products/" + slug + ".webp", Alt: alt}
}
