package server_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

// A shop may never use what is beside the core of the cart. Without one of these packages, its calls are not there, and all others
// are served.
func TestCore_ServesWithoutEachPackageBesideIt(t *testing.T) {
	t.Parallel()
	calls := map[string]string{"handover": "POST /cart/handover", "undo": "POST /cart/merge/undo", "share": "POST /cart/share", "live": "GET /cart/events", "ucp": "GET /.well-known/ucp"}
	assert.Equal(t, slices.Sorted(maps.Keys(calls)), slices.Sorted(slices.Values(server.PackagesBeside())), "packages with a call in this test")
	for pkg := range calls {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			var parts *server.Parts
			s := openShop(t, embeddedRedis(t), func(p *server.Parts) { parts = p })
			web := httptest.NewServer(assert.Must(server.AssembleWithout(*parts, pkg))(t))
			t.Cleanup(web.Close)
			s.URL = web.URL
			for of, call := range calls {
				method, path, _ := strings.Cut(call, " ")
				r := assert.Must(http.NewRequestWithContext(t.Context(), method, s.URL+path, nil))(t)
				r.Header.Set("X-Public-Key", s.Key)
				a := assert.Must(web.Client().Do(r))(t)
				assert.NoError(t, a.Body.Close())
				assert.That(t, (a.StatusCode == http.StatusNotFound) == (of == pkg), "%s answers %d", call, a.StatusCode)
			}
			c := s.guest(t).fill("1×2")
			c.ok("POST", "/cart/ops", `{"ops":[{"op":"add","product_id":2}]}`)
			if pkg != "handover" {
				c.ok("POST", "/cart/handover", "")
			}
			c.logIn("1001").wantLines("1×2 2×1")
			c.ok("POST", "/cart/coupon", `{"coupon":"TEN"}`)
			c.ok("DELETE", "/cart/clear", "")
		})
	}
}
