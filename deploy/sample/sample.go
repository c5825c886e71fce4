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

// Products returns the products of each store by the store's id. Their names are in English
// and Arabic. The playground serves their pictures; the URLs have no base path.
func Products() map[int64][]*cart.Product {
	return map[int64][]*cart.Product{
		1: {
			product(1, named("Game credit", "رصيد ألعاب"), "game-credit", 4950),
			stocked(product(2, named("Concert ticket", "تذكرة حفل"), "concert-ticket", 1000), 3),
			inactive(product(3, named("Old wallpaper pack", "حزمة خلفيات قديمة"), "old-wallpaper-pack", 500)),
			subscription(product(4, named("Pro membership", "العضوية الاحترافية"), "pro-membership", 0),
				cart.Plan{ID: 41, Duration: period.Monthly, Price: 2000},
				cart.Plan{ID: 42, Duration: period.Annually, Price: 20000}),
			asking(product(5, named("Streaming account", "حساب بث"), "streaming-account", 1500),
				cart.Field{Name: "Account email", Required: true},
				cart.Field{Name: "Region", Options: []cart.Option{
					{Code: "sa", Name: named("Saudi Arabia", "السعودية")},
					{Code: "us", Name: named("United States", "الولايات المتحدة"), Price: 525},
				}}),
			stocked(product(6, named("Limited skin", "مظهر محدود"), "limited-skin", 777), 0),
			limited(product(7, named("Loot box", "صندوق غنائم"), "loot-box", 333), 2, 5),
			untaxed(product(8, named("Gift card", "بطاقة هدية"), "gift-card", 2500)),
			single(subscription(product(9, named("Fan club", "نادي المعجبين"), "fan-club", 0),
				cart.Plan{ID: 91, Duration: period.Monthly, Price: 1000},
				cart.Plan{ID: 92, Duration: period.Annually, Price: 10000, Label: named("1 year for the price of 10 months", "سنة بسعر 10 أشهر")})),
			stepped(product(10, named("Sticker pack", "حزمة ملصقات"), "sticker-pack", 200), 5, 5),
		},
		2: {
			product(21, named("E-book", "كتاب إلكتروني"), "e-book", 1200),
			subscription(product(22, named("Magazine", "مجلة"), "magazine", 0),
				cart.Plan{ID: 221, Duration: period.Monthly, Price: 499}),
		},
	}
}

// named returns a name for a store whose language is English.
func named(en, ar string) locale.Name {
	return locale.Name{Own: en, Others: map[locale.Locale]string{locale.Ar: ar}}
}

func product(id int64, name locale.Name, slug string, price money.Amount) *cart.Product {
	return &cart.Product{
		ID: id, Name: name, Slug: slug, Type: "digital", Active: true, MinQuantity: 1, Step: 1,
		Price: price, OriginalPrice: price,
		Image: &cart.Image{URL: "/playground/pictures/" + slug + ".svg", Alt: name.Own},
	}
}

func subscription(p *cart.Product, plans ...cart.Plan) *cart.Product {
	p.Type, p.Plans = "subscription", plans
	return p
}

func asking(p *cart.Product, fields ...cart.Field) *cart.Product {
	p.Fields = fields
	return p
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

func stepped(p *cart.Product, minimum, step int64) *cart.Product {
	p.MinQuantity, p.Step = minimum, step
	return p
}

// single allows one of the product in a cart.
func single(p *cart.Product) *cart.Product {
	one := int64(1)
	p.MaxPerCart = &one
	return p
}

func untaxed(p *cart.Product) *cart.Product {
	p.TaxRate = new(int64)
	return p
}
