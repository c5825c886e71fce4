package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
)

func TestTax_IsByProduct(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		untaxed, low := productOf(2), productOf(5)
		untaxed.TaxRate, untaxed.Stock, low.TaxRate, low.Fields = new(int64), nil, ptr(int64(50_000)), nil
		s.Catalog.Put(s.ID, &untaxed)
		s.Catalog.Put(s.ID, &low)
		c := s.guest(t)
		empty := c.ok("GET", "/cart/summary", "").Body.Data
		assert(t, *empty.Tax.Rate == 15 && len(empty.Tax.Lines) == 0 && !*empty.PaymentRequired, "an empty cart: %+v, payment %t", empty.Tax, *empty.PaymentRequired)
		c.add(`{"product_id":2,"qty":2}`) // 20.00
		single := c.ok("GET", "/cart/summary", "").Body.Data
		if diff := cmp.Diff([]taxLineBody{{Rate: 0, Base: 20, Amount: 0}}, single.Tax.Lines); diff != "" || single.Tax.Rate == nil || *single.Tax.Rate != 0 {
			t.Errorf("one rate (-want +got):\n%s", diff)
		}
		c.add(`{"product_id":5}`) // 15.00
		c.add(`{"product_id":1}`) // 49.50
		c.redeem("TEN")
		got := c.ok("GET", "/cart/summary", "").Body.Data
		want := []taxLineBody{{Rate: 15, Base: 38.74, Amount: 5.81}, {Rate: 5, Base: 12.86, Amount: 0.64}, {Rate: 0, Base: 18}}
		if diff := cmp.Diff(want, got.Tax.Lines); diff != "" || got.Tax.Rate != nil || got.Tax.Amount != 6.45 || got.TaxAmount != 6.45 {
			t.Errorf("rate %v, tax %v and %v, lines (-want +got):\n%s", got.Tax.Rate, got.Tax.Amount, got.TaxAmount, diff)
		}
		assert(t, got.Total == 76.05 && *got.PaymentRequired, "total %v, payment %t", got.Total, *got.PaymentRequired)
	})
}

func ptr[T any](v T) *T { return &v }

func TestSummary_NeedsNoPaymentForACartThatCostsNothing(t *testing.T) {
	s := realShop(t)
	s.Catalog.PutCoupon(s.ID, &cart.Coupon{Code: "FREE", Kind: cart.Percent, Rate: 1_000_000})
	c := s.guest(t).fill("1×1")
	c.redeem("FREE")
	got := c.ok("GET", "/cart/summary", "").Body.Data
	assert(t, !*got.PaymentRequired && got.Total == 0, "total %v, payment %t", got.Total, *got.PaymentRequired)
}

func TestCart_ShowsThePriceWhenALineWasAdded(t *testing.T) {
	s := realShop(t)
	c := s.guest(t).fill("1×1")
	dearer := productOf(1)
	dearer.Price, dearer.OriginalPrice = 5950, 5950
	s.Catalog.Put(s.ID, &dearer)
	got := c.cart().Items[0]
	assert(t, got.AddedPrice == 49.5 && got.UnitPrice == 59.5, "added at %v, costs %v", got.AddedPrice, got.UnitPrice)
}

// inCurrency opens a shop whose store has another currency than the sample's.
func inCurrency(t *testing.T, code string) *shop {
	t.Helper()
	return openShop(t, embeddedRedis(t), func(p *server.Parts) {
		store := must(p.Stores.Sole(t.Context()))(t)
		other := *store
		other.Currency = code
		p.Stores = auth.NewMemoryStores(money.Known, &other)
		p.APITokens = auth.NewAPITokens(auth.APITokensConfig{Source: auth.NewMemoryAPITokens(), Stores: p.Stores})
	})
}

func TestCart_OfAStoreInAnUnknownCurrencyIsUnavailable(t *testing.T) {
	t.Parallel()
	s := inCurrency(t, "XYZ")
	c := s.guest(t)
	for _, call := range [][3]string{
		{"GET", "/cart"},
		{"GET", "/cart/count"},
		{"GET", "/cart/validate"},
		{"GET", "/cart/summary"},
		{"POST", "/cart/add", `{"product_id":1}`},
	} {
		a := c.refused(503, "unavailable", call[0], call[1], call[2])
		assert(t, a.Header.Get("Retry-After") != "" && !strings.Contains(string(a.Raw), "4950"), "%s: %s", call[1], a.Raw)
	}
	want := fmt.Sprintf(`store %d: unknown currency \"XYZ\"`, s.ID)
	assert(t, strings.Contains(s.Log.String(), want) && strings.Contains(s.Log.String(), `"level":"ERROR"`), "the log does not contain %s:\n%s", want, s.Log.String())
}

func TestCart_ShowsTheRightDecimalsOfANewISOCurrency(t *testing.T) {
	t.Parallel()
	for code, formatted := range map[string]string{"XCG": "Cg.49.50", "BGN": "BGN\u00a049.50"} {
		a := inCurrency(t, code).guest(t).add(`{"product_id":1}`) // 4950 minor units
		got := a.Body.Data
		assert(t, got.Total == 49.5 && got.Currency == code && strings.Contains(string(a.Raw), formatted), "%s: %s", code, a.Raw)
	}
}
