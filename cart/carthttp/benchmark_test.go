package carthttp

import (
	"cmp"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/cart/price"
	"commerce/cart/wire"
	"commerce/deploy/assert"
)

func BenchmarkView(b *testing.B) {
	token, prices, parts := auth.CartToken(strings.Repeat("t", 22)), money.NewFormatter(), newPartsCache()
	for name, p := range map[string]*price.Priced{"5 lines": plainCart(5), "50 lines": plainCart(50), "every kind of line": fullPriced()} {
		for _, l := range locale.All() {
			b.Run(fmt.Sprintf("%s/%s", name, l), func(b *testing.B) {
				var buffer []byte
				b.ReportAllocs()
				for b.Loop() {
					w := wire.NewWriter(buffer[:0], l, prices)
					newView(w, riyadh, "https://shop.example.com", "", parts).cart(p, token, nil)
					w.ETag(p.Cart.Tag())
					buffer = w.Bytes()
				}
				b.SetBytes(int64(len(buffer)))
			})
		}
	}
}

// plainCart returns a cart of products without plans, fields or limits.
func plainCart(lines int) *price.Priced {
	c, products := fullCart(), map[int64]*cart.Product{}
	c.Lines = nil
	for i := range int64(lines) {
		p := *fullCatalog()[1]
		p.ID = 9001 + i
		products[p.ID] = &p
		c.Lines = append(c.Lines, cart.Line{ID: cart.NewLineID(p.ID, 0, nil), Quantity: 2, AddedPrice: p.Price})
	}
	priced := price.Of(c, riyadh, products, carttest.Limits)
	return &priced
}

func BenchmarkRequest(b *testing.B) {
	gin.SetMode(gin.ReleaseMode) // otherwise each context prints a warning
	for name, body := range map[string]string{
		"plain":  `{"product_id":42,"qty":1}`,
		"fields": `{"product_id":5,"qty":1,"subscription_plan":{"id":52},"fields":{"0":"a@example.com","region":"us"},"notice":"a gift"}`,
	} {
		b.Run(name, func(b *testing.B) {
			content := strings.NewReader(body)
			c, _ := gin.CreateTestContext(httptest.NewRecorder())
			c.Request = httptest.NewRequest("POST", "/cart/add", nil)
			c.Request.Header.Set("Content-Type", "application/json")
			c.Request.Header.Set("X-Timestamp", "1772366400000")
			b.ReportAllocs()
			for b.Loop() {
				content.Reset(body)
				c.Request.Body = io.NopCloser(content)
				on, invalid := conditionsOf(c.Request.Header)
				in, read, err := readInput(c, "")
				assert.NoError(b, cmp.Or(err, invalid))
				identify(&on, c.Request, "", read)
				_, refusal := in.addition()
				assert.Require(b, refusal == nil, "%v", refusal)
			}
		})
	}
}
