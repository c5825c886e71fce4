// Package sample holds the data of the demo and of `commerce seed`: two small stores,
// and a generator of synthetic subscriptions.
package sample

import (
	"time"

	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/cart/price"
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
			ID: 1, Name: "Riyadh Digital", Host: "localhost", PublicKeys: []string{"pk_demo"}, Currency: "SAR", Locale: locale.En,
			TaxRate: 150_000, PricesIncludeTax: true, Country: "SA", TaxRates: taxRates(), PaymentMethods: payment,
		},
		{
			ID: 2, Name: "Second Store", PublicKeys: []string{"pk_demo2"}, Currency: "USD", Locale: locale.En,
			PricesIncludeTax: true, Country: "US", TaxRates: taxRates(), PaymentMethods: payment[1:],
		},
	}
}

// Products returns the products of each store by the store's id. Their names are in English
// and Arabic. The service has their pictures; the URLs have no base path.
func Products() map[int64][]*cart.Product {
	first := []*cart.Product{
		product(1, named("Game credit", "رصيد ألعاب"), "game-credit", 4950),
		product(2, named("Concert ticket", "تذكرة حفل"), "concert-ticket", 1000),
		product(3, named("Old wallpaper pack", "حزمة خلفيات قديمة"), "old-wallpaper-pack", 500),
		product(4, named("Pro membership", "العضوية الاحترافية"), "pro-membership", 0,
			cart.Plan{ID: 41, Duration: period.Monthly, Price: 2000},
			cart.Plan{ID: 42, Duration: period.Annually, Price: 20000}),
		product(5, named("Streaming account", "حساب بث"), "streaming-account", 1500),
		product(6, named("Limited skin", "مظهر محدود"), "limited-skin", 777),
		product(7, named("Loot box", "صندوق غنائم"), "loot-box", 333),
		product(8, named("Gift card", "بطاقة هدية"), "gift-card", 2500),
		product(9, named("Fan club", "نادي المعجبين"), "fan-club", 0,
			cart.Plan{ID: 91, Duration: period.Monthly, Price: 1000},
			cart.Plan{ID: 92, Duration: period.Annually, Price: 10000, Label: named("1 year for the price of 10 months", "سنة بسعر 10 أشهر")}),
		product(10, named("Sticker pack", "حزمة ملصقات"), "sticker-pack", 200),
	}
	ticket, wallpaper, account, skin, box, gift, club, stickers := first[1], first[2], first[4], first[5], first[6], first[7], first[8], first[9]
	ticket.Stock = new(int64(3))
	wallpaper.Active = false
	account.Fields = []cart.Field{
		{Name: "Account email", Required: true},
		{Name: "Region", Options: []cart.Option{
			{Code: "sa", Name: named("Saudi Arabia", "السعودية")},
			{Code: "us", Name: named("United States", "الولايات المتحدة"), Price: 525},
		}},
	}
	skin.Stock = new(int64(0))
	box.MinQuantity, box.MaxQuantity = 2, new(int64(5))
	gift.TaxRate = new(int64(0))
	club.MaxPerCart = new(int64(1))
	stickers.MinQuantity, stickers.Step = 5, 5
	ebook := product(21, named("E-book", "كتاب إلكتروني"), "e-book", 1200)
	ebook.TaxClass = ebooks
	return map[int64][]*cart.Product{
		1: first,
		2: {
			ebook,
			product(22, named("Magazine", "مجلة"), "magazine", 0,
				cart.Plan{ID: 221, Duration: period.Monthly, Price: 499}),
		},
	}
}

func named(en, ar string) locale.Name {
	return locale.Name{Own: en, Others: map[locale.Locale]string{locale.Ar: ar}}
}

// product returns a product with unlimited stock, or a subscription if there are plans.
func product(id int64, name locale.Name, slug string, price money.Amount, plans ...cart.Plan) *cart.Product {
	kind := "digital"
	if plans != nil {
		kind = "subscription"
	}
	return &cart.Product{
		ID: id, Name: name, Slug: slug, Type: kind, TaxClass: store.StandardTax, Active: true, MinQuantity: 1, Step: 1,
		Price: price, OriginalPrice: price, Plans: plans,
		Image: &cart.Image{URL: "/playground/pictures/" + slug + ".svg", Alt: name.Own},
	}
}

// Coupons returns the coupons of each store by its id, with dates relative to now.
func Coupons(now time.Time) map[int64][]*price.Coupon {
	return map[int64][]*price.Coupon{
		1: {
			{Code: "TEN", Kind: price.Percent, Rate: 100_000},
			{Code: "FIVE", Kind: price.Fixed, Amount: 500, Minimum: 2000},
			{Code: "OLD", Kind: price.Percent, Rate: 200_000, Expires: now.AddDate(0, 0, -30)},
			{Code: "GAMES", Kind: price.Percent, Rate: 200_000, Products: []int64{1}},
			{Code: "LATER", Kind: price.Percent, Rate: 150_000, Starts: now.AddDate(0, 0, 30)},
			{Code: "ONCE", Kind: price.Fixed, Amount: 300, MaxUsesCustomer: new(int64(1))},
			{Code: "USED", Kind: price.Fixed, Amount: 1000, MaxUses: new(int64(1))},
			{
				Code: "STICKERS", Name: named("10 % off 10 sticker packs", "خصم 10% عند شراء 10 حزم ملصقات"), Kind: price.Percent, Rate: 100_000,
				Automatic: true, Combines: true, MinQuantity: 10, Products: []int64{10},
			},
			{Code: "EXTRA", Kind: price.Percent, Rate: 50_000, Combines: true},
			{Code: "PLUS", Kind: price.Fixed, Amount: 200, Combines: true},
		},
	}
}

// CouponUse is an order that used a coupon.
type CouponUse struct {
	Store    int64
	Code     string
	Customer string // the subject of the customer's JWT; "" for a guest
	Order    int64
}

func CouponUses() []CouponUse {
	return []CouponUse{
		{Store: 1, Code: "USED", Customer: "1002", Order: 7001},
		{Store: 1, Code: "ONCE", Customer: "1002", Order: 7002},
	}
}
