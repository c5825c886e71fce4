package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cart/period"
	"commerce/deploy/assert"
)

// The store changes its products and ends a coupon. The fixes in the cart, sent back as one list,
// mend what the shopper does not have to decide.
func TestFixes_SentBackMendTheCart(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		left := []string{"plan_unavailable", "field_invalid", "cart_empty", "coupon_invalid", "low_stock"}
		for round := range 10 {
			c, coupon := s.guest(t), fmt.Sprint("C", round)
			s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: coupon, Kind: cart.Fixed, Amount: 1})
			for id := range int64(3) {
				s.Catalog.Put(s.ID, bundle(910+id*10))
			}
			for _, n := range r.Perm(12)[:9] {
				product := 910 + n/4*10
				c.add(fmt.Sprintf(`{"product_id":%d,"subscription_plan":%d,"qty":%d,"fields":{"Size":"xl"}}`, product, product+1+n%4, 1+r.IntN(9)))
			}
			c.redeem(coupon)
			s.Catalog.DeleteCoupon(s.ID, coupon)
			for id := range int64(3) {
				s.Catalog.Put(s.ID, changed(bundle(910+id*10), r))
			}
			if r.IntN(4) == 0 {
				s.Catalog.Delete(s.ID, 930)
			}
			broken, validated := c.cart(), c.send("GET", "/cart/validate", "").Body.Data
			fixes := fixesOf(broken.issues())
			assert.Equal(t, fixes, fixesOf(slices.Concat(validated.Issues, validated.Warnings)), "seed %d: fixes of the cart, and of validate", seed)
			if len(fixes) == 0 {
				continue
			}
			list := `{"ops":[` + strings.Join(fixes, ",") + `]}`
			mended := c.ok("POST", "/cart/ops", list).Body.Data
			for _, i := range slices.Concat(mended.issues(), c.send("GET", "/cart/validate", "").Body.Data.Issues) {
				assert.That(t, slices.Contains(left, i.Code) && string(i.Fix) == "null", "seed %d: %s leaves %s of %s", seed, list, i.Code, mended.lines())
			}
			again := c.ok("POST", "/cart/ops", list).Body.Data
			assert.That(t, again.Version == mended.Version, "seed %d: %s twice: %s, want %s", seed, list, again.lines(), mended.lines())
		}
	})
}

func (b cartBody) issues() (all []issueBody) {
	for _, item := range b.Items {
		if item.Issue != nil {
			all = append(all, *item.Issue)
		}
	}
	return append(all, b.Warnings...)
}

func fixesOf(issues []issueBody) (fixes []string) {
	for _, i := range issues {
		if string(i.Fix) != "null" {
			fixes = append(fixes, string(i.Fix))
		}
	}
	return fixes
}

func bundle(id int64) *cart.Product {
	p := pack()
	p.ID, p.MinQuantity, p.Step = id, 1, 1
	for n := range int64(4) {
		p.Plans = append(p.Plans, cart.Plan{ID: id + 1 + n, Duration: period.Monthly, Price: 5})
	}
	p.Fields = []cart.Field{{Name: "Size", Options: []cart.Option{{Code: "m", Name: locale.Named("M")}, {Code: "xl", Name: locale.Named("XL"), Price: 3}}}}
	return p
}

func changed(p *cart.Product, r *rand.Rand) *cart.Product {
	p.Active = r.IntN(8) > 0
	p.Price += money.Amount(r.IntN(3))
	p.MinQuantity, p.Step = 1+r.Int64N(4), 1+r.Int64N(3)
	for _, bound := range []**int64{&p.Stock, &p.MaxQuantity, &p.MaxPerCart} {
		if r.IntN(2) > 0 {
			*bound = new(p.MinQuantity + r.Int64N(9))
		}
	}
	if p.Stock != nil && r.IntN(3) == 0 {
		*p.Stock = r.Int64N(3)
	}
	p.Plans[3].Retired = true
	if r.IntN(8) == 0 {
		p.Fields[0].Options = p.Fields[0].Options[:1]
	}
	return p
}
