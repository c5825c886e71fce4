package server_test

import (
	"testing"

	"commerce/cmd/internal/pages"
	"commerce/deploy/ephemeral"
	"commerce/deploy/sample"
)

func TestPlayground_ShowsTaxByRateAndWhyACouponDoesNotCount(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{}))
	untaxed := *sample.Products()[1][1]
	untaxed.TaxRate = new(int64)
	s.Catalog.Put(s.ID, &untaxed)

	p := openPage(t, s.URL+"/")
	p.hasCarts()
	for _, product := range []string{"1", "2"} {
		p.addProduct(product)
	}
	p.click(`[data-part="checkout"]`)
	p.until(`["(15 %)", "(0 %)"].every((rate) => document.querySelector("[data-part='totals']").textContent.includes(rate))`)
	p.until(`[...document.querySelectorAll("[data-part='sample-coupons'] button")].some((b) => b.textContent === "GAMES" && (b.click(), true))`)
	p.until(`document.querySelector("[data-part='coupon-given'] .tag.good")?.textContent.includes("GAMES")`)
	p.until(`document.querySelector('[data-line="1"]').textContent.includes("9.90")`)
	p.click(`[data-line="1"] .remove`)
	p.until(`document.querySelector("[data-part='coupon-given'] .hint")?.textContent.includes("does not apply")`)
}
