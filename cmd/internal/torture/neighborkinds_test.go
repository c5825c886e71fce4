package torture

import (
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// neighbors returns one client of each kind.
func (s *street) neighbors() []neighbor {
	return []neighbor{
		{name: "a reader of deep pages", act: s.deepPage},
		{name: "an owner of the largest cart", act: s.largeCart, wait: s.fillLargeCart},
		{name: "a client that merges", act: s.mergeCart()},
		{name: "a maker of carts", act: s.newCart},
		{name: "a client with bad credentials", act: s.badCredentials()},
	}
}

func (s *street) deepPage(i int64) int {
	path := fmt.Sprintf("/subscriptions?per_page=1&page=%d", int64(s.deepest)-i%20)
	return s.visitTo(s.neighbor, "GET", path, "", "Authorization", "Bearer "+s.apiToken)
}

const largeCartToken = "a-token-of-a-large-cart-00"

// largeLine returns the body of an add of one of 100 lines that have 64 KiB of text.
func largeLine(i int64) string {
	value := fmt.Sprintf("%03d-%s", i%100, strings.Repeat("f", 130))
	return fmt.Sprintf(`{"product_id":5,"fields":{"0":%q},"notice":%q}`, value, strings.Repeat("n", 500))
}

func (s *street) fillLargeCart() {
	for i := range int64(100) {
		for range 50 {
			if s.visitTo(s.neighbor, "POST", "/cart/add", largeLine(i), "X-Cart-Token", largeCartToken) == 200 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (s *street) largeCart(i int64) int {
	if i%4 == 0 {
		return s.visitTo(s.neighbor, "PATCH", "/cart/items/5", fmt.Sprintf(`{"quantity":%d}`, i%900+1), "X-Cart-Token", largeCartToken)
	}
	return s.visitTo(s.neighbor, "GET", "/cart", "", "X-Cart-Token", largeCartToken)
}

// newToken returns an unused cart token.
func (s *street) newToken() string { return fmt.Sprintf("a-new-cart-token-%010d", s.made.Add(1)) }

// mergeCart returns an act that fills a guest's cart and merges it.
func (s *street) mergeCart() func(int64) int {
	var logins [64]string
	for i := range logins {
		logins[i] = "Bearer " + customer(s.t, fmt.Sprint("merging-", i))
	}
	return func(i int64) int {
		token := s.newToken()
		status := s.visitTo(s.neighbor, "POST", "/cart/add", `{"product_id":1003}`, "X-Cart-Token", token)
		if status != 200 {
			return status
		}
		return s.visitTo(s.neighbor, "GET", "/cart", "", "X-Cart-Token", token, "Authorization", logins[i%64])
	}
}

func (s *street) newCart(int64) int {
	return s.visitTo(s.neighbor, "POST", "/cart/add", `{"product_id":1004}`, "X-Cart-Token", s.newToken())
}

// badCredentials returns an act that sends JWTs with a wrong signature, which the service must
// verify, and API tokens that do not exist, which it must look up.
func (s *street) badCredentials() func(int64) int {
	bad := signJWT(s.t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), claimsOf(1, "1001"))
	secret := strings.Repeat("s", 43)
	return func(i int64) int {
		if i%2 == 0 {
			return s.visitTo(s.neighbor, "GET", "/cart", "", "Authorization", "Bearer "+bad)
		}
		return s.visitTo(s.neighbor, "GET", "/subscriptions", "", "Authorization", fmt.Sprintf("Bearer %d|%s", 1_000_000+s.made.Add(1), secret))
	}
}
