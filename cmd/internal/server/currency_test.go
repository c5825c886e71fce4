package server_test

import (
	"fmt"
	"strings"
	"testing"

	"commerce/auth"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
)

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
