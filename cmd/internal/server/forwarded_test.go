package server_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
	"commerce/cmd/internal/server"
)

func TestClient_IsTheSameHoweverAProxyWritesItsAddress(t *testing.T) {
	t.Parallel()
	var client string
	h, _ := handlerOf(t, func(c *server.Config) {
		c.TrustedProxies = []string{"192.0.2.0/24"}
		c.Areas = only("/client", func(c *gin.Context) (wire.Answer, error) {
			client = wire.Client(c)
			c.Status(http.StatusNoContent)
			return wire.Answer{}, nil
		})
	})
	for forwarded, want := range map[string]string{
		"198.51.100.7":                          "198.51.100.7",
		"198.51.100.7:5555":                     "198.51.100.7",
		"203.0.113.1:1, 198.51.100.7:5555":      "198.51.100.7",
		"198.51.100.7:5555, 192.0.2.9:80":       "198.51.100.7",
		"::ffff:198.51.100.7":                   "198.51.100.7",
		"::ffff:c633:6407":                      "198.51.100.7",
		"2001:db8:1:2:3::4":                     "2001:db8:1:2::/64",
		"[2001:db8:1:2:3::4]:5555":              "2001:db8:1:2::/64",
		"nonsense:5555":                         "192.0.2.1",
		"198.51.100.7:99999":                    "192.0.2.1",
		"[2001:db8:1:2:3::4]:5555, 192.0.2.200": "2001:db8:1:2::/64",
	} {
		if ask(h, "192.0.2.1", "GET", "/client", "X-Forwarded-For", forwarded); client != want {
			t.Errorf("%s counts for %q, want %q", forwarded, client, want)
		}
	}
}
