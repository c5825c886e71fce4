package server_test

import (
	"fmt"
	"testing"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

type buyerBody struct{ Country, Source *string }

func (b buyerBody) String() string {
	text := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	return text(b.Country) + " by " + text(b.Source)
}

func (c *shopper) isIn(country string, headers ...string) cartBody {
	c.t.Helper()
	return c.ok("POST", "/cart/ops", fmt.Sprintf(`{"ops":[{"op":"buyer","country":%s}]}`, country), headers...).Body.Data
}

// The store of the sample is in Saudi Arabia; its prices contain 15 % of tax.
func TestBuyer_DecidesTheTaxAndMovesWithTheCart(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t).fill("1×2 8×1")
		home := guest.ok("GET", "/cart/summary", "").Body.Data
		assert.That(t, home.Buyer.String() == "null by null" && *home.Tax.Country == "SA" && home.TaxAmount == 12.91, "at home: %v, %+v", home.Buyer, home.Tax)
		made := guest.isIn(`"de"`)
		assert.That(t, made.Buyer.String() == "DE by shopper" && made.Version == home.Version+1 && made.Total == home.Total && made.TaxAmount == 15.81, "in Germany: %+v", made)
		assert.Equal(t, guest.isIn(`"DE"`).Version, made.Version, "version after the same again")
		abroad := guest.ok("GET", "/cart/summary", "").Body.Data.Tax
		assert.That(t, *abroad.Country == "DE" && abroad.Rate == nil && abroad.Lines[0].Rate == 19 && abroad.Lines[1].Rate == 0, "the summary: %+v", abroad)
		for _, country := range []string{`"XK"`, `5`} {
			refused := guest.refused(422, "validation_failed", "POST", "/cart/ops", `{"ops":[{"op":"clear"},{"op":"buyer","country":`+country+`}]}`)
			assert.That(t, len(refused.Body.Errors["ops.1.country"]) == 1, "%s: %s", country, refused.Raw)
		}
		guest.refused(422, "validation_failed", "POST", "/cart/ops", `{"ops":[{"op":"buyer"}]}`)

		here := guest.logIn("2")
		assert.Equal(t, here.cart().Buyer.String(), "DE by shopper", "the guest's fills the customer's")
		back, _, _ := here.undo()
		assert.Equal(t, here.withoutToken().cart().Buyer.String()+", "+back.cart().Buyer.String(), "null by null, DE by shopper", "after the undo")
		assert.Equal(t, back.shared(back.share()).Buyer.String(), "null by null", "a share")
		redeemed := s.guest(t).ok("POST", redeem, codeBody(back.handOver()), withKey(redeemerKey)...)
		assert.Equal(t, redeemed.Body.Data.Buyer.String(), "DE by shopper", "after a hand-over")
	})
}

func TestBuyer_IsWhereATrustedProxySays(t *testing.T) {
	const name = "CF-IPCountry"
	for proxies, want := range map[string]string{"127.0.0.1": "FR by request", "192.0.2.1": "null by null"} {
		s := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.TrustedProxies, p.CountryHeader = []string{proxies}, name })
		guest := s.guest(t).fill("1×1")
		shown := guest.ok("GET", "/cart", "", name, "fr").Body.Data
		assert.Equal(t, shown.Buyer.String(), want, "the peer is trusted: %v", proxies == "127.0.0.1")
		if want == "null by null" {
			continue
		}
		assert.That(t, shown.TaxAmount == 8.25 && shown.Version == 1, "in France: %+v", shown)
		tag := guest.ok("GET", "/cart", "", name, "FR").Header.Get("ETag")
		assert.Equal(t, guest.send("GET", "/cart", "", name, "FR", "If-None-Match", tag).Status, 304, "the same country")
		assert.Equal(t, guest.send("GET", "/cart", "", name, "DE", "If-None-Match", tag).Status, 200, "another country")
		assert.Equal(t, guest.send("GET", "/cart", "", name, "FR", "If-None-Match", tag).Status, 304, "the first one again")
		for _, headers := range [][]string{{name, "XX"}, {name, "T1"}, {name, ""}, {name, "FR, DE"}, {name, "FR", name, "DE"}, nil} {
			assert.Equal(t, guest.ok("GET", "/cart", "", headers...).Body.Data.Buyer.String(), "null by null", "%q", headers)
		}
		assert.Equal(t, guest.isIn(`"DE"`, name, "FR").Buyer.String(), "DE by shopper", "the shopper knows better")
		assert.Equal(t, guest.isIn(`null`, name, "FR").Buyer.String(), "FR by request", "forgotten")
		assert.Equal(t, guest.ok("POST", "/cart/add", `{"product_id":2}`, name, "GB").Body.Data.Buyer.String(), "GB by request", "the answer to a change")
	}
}
