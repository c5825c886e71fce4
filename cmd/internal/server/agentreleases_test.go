package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// Each platform gets the release of its profile: its version, its schemas (which every response is checked against) and its rules.
func TestAgent_IsAnsweredInTheReleaseOfItsPlatform(t *testing.T) {
	profiles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release := strings.TrimPrefix(r.URL.Path, "/")
		fmt.Fprintf(w, `{"ucp":{"version":%q,"services":{},"payment_handlers":{},"capabilities":{"dev.ucp.shopping.cart":[{"version":%[1]q}],
			"dev.ucp.shopping.discount":[{"version":%[1]q}]}}}`, release)
	}))
	t.Cleanup(profiles.Close)
	s := newShop(t, func(p *server.Parts) {
		p.TrustProfiles, p.LocalProfiles, p.Deadline = false, true, ephemeral.Patience(20*time.Second)
	})
	for _, a := range s.agents(t) {
		for _, release := range []string{"2026-04-08", "2026-08-25"} {
			a.profile = profiles.URL + "/" + release
			latest := release == "2026-08-25"
			var made reply
			ephemeral.Eventually(t, "a fetch that the limits allow", func() bool {
				made = a.call("create_cart", "", elements("1×2 6×1"), "")
				return made.Status != http.StatusServiceUnavailable
			})
			id := made.Cart.ID
			item := func(members string) string { return `{"line_items":[{` + members + `}]}` }
			for name, r := range map[string]reply{
				"create":        made,
				"read":          a.call("get_cart", id, "", ""),
				"update":        a.call("update_cart", id, elements("1×3"), ""),
				"with codes":    a.call("update_cart", id, `{"line_items":[{"item":{"id":"1"},"quantity":1}],"discounts":{"codes":["TEN"]}}`, ""),
				"not found":     a.call("get_cart", "none", "", ""),
				"malformed":     a.call("update_cart", id, `{}`, ""),
				"nothing to do": a.call("create_cart", "", elements("6×1"), ""),
				"cancel":        a.call("cancel_cart", a.create("1×1").Cart.ID, "", ""),
			} {
				assert.Equal(t, r.Cart.UCP.Version, release, "%s: release", name)
			}

			// What only the later one defines is ignored in the other.
			kilograms := item(`"item":{"id":"1","quantity_unit":{"unit":"KGM","display_text":"kg"}},"quantity":7`)
			pieces := item(`"item":{"id":"1","quantity_unit":{"unit":"C62","scale":0,"increment":2,"display_text":"piece"}},"quantity":4`)
			wrongUnit := item(`"item":{"id":"1","quantity_unit":{"unit":"C62","scale":2,"increment":0}},"quantity":9`)
			mismatch := "error quantity_unit_mismatch $.line_items[0].item.quantity_unit "
			context := func(members string) string { return `{"line_items":[],"context":{` + members + `}}` }
			for _, c := range []struct{ operation, sent, lines, messages, older string }{
				{"update_cart", pieces, "1×4", "[]", "[]"},
				{"update_cart", kilograms, "1×4", "[" + mismatch + "recoverable]", "[]"},
				{"create_cart", kilograms, "", "[" + mismatch + "unrecoverable]", "[]"},
				{"update_cart", wrongUnit, "", "[error validation_failed $.line_items[0].item.quantity_unit.display_text recoverable " +
					"error validation_failed $.line_items[0].item.quantity_unit.increment recoverable " +
					"error validation_failed $.line_items[0].item.quantity_unit.scale recoverable]", "[]"},
				{"create_cart", context(`"location":7,"payment":[{"handler":"x","types":[1]},1]`), "", "[error validation_failed $.context.location recoverable " +
					"error validation_failed $.context.payment[0].handler recoverable error validation_failed $.context.payment[0].types[0] recoverable " +
					"error validation_failed $.context.payment[1] recoverable]", "[error cart_empty unrecoverable]"},
				{
					"create_cart", context(`"eligibility":["com.example-shop.2gold"]`), "", "[error cart_empty unrecoverable]",
					"[error validation_failed $.context.eligibility[0] recoverable]",
				},
			} {
				r := a.call(c.operation, id, c.sent, "")
				assert.Equal(t, fmt.Sprint(r.messages()), map[bool]string{true: c.messages, false: c.older}[latest], "%s of %s in %s: messages", c.operation, c.sent, release)
				assert.That(t, !latest || r.lines() == c.lines, "%s of %s in %s: lines %s", c.operation, c.sent, release, r.lines())
			}
		}
	}
}

func TestAgent_FindsAProfileOfEachRelease(t *testing.T) {
	s := newShop(t, func(p *server.Parts) { p.PublicURL = "https://api.example.com" })
	type profile struct {
		UCP struct {
			Version      string
			Supported    map[string]string `json:"supported_versions"`
			Capabilities map[string][]struct {
				Version, Schema string
				Config          struct{ Endpoint string }
			}
		}
	}
	read := func(path string) profile { return decode[profile](t, s.guest(t).ok("GET", path, "").Raw) }
	root := read("/.well-known/ucp")
	assert.Equal(t, root.UCP.Version, "2026-08-25", "for a client that names no release")
	const api = "https://api.example.com"
	assert.Equal(t, root.UCP.Supported, map[string]string{
		"2026-04-08": api + "/ucp/" + s.Key + "/profiles/2026-04-08", "2026-08-25": api + "/ucp/" + s.Key + "/profiles/2026-08-25",
	}, "profiles")
	for release, url := range root.UCP.Supported {
		leaf := read(strings.TrimPrefix(url, api))
		assert.That(t, leaf.UCP.Version == release && leaf.UCP.Supported == nil, "%s is of release %s, and leads to %v", url, leaf.UCP.Version, leaf.UCP.Supported)
		for name, entries := range leaf.UCP.Capabilities {
			assert.That(t, entries[0].Version == release && strings.Contains(entries[0].Schema, "/"+release+"/"), "%s of %s: %+v", name, release, entries)
		}
		links := leaf.UCP.Capabilities["dev.ucp.shopping.permalink"]
		assert.Equal(t, len(links), map[string]int{"2026-08-25": 1}[release], "permalinks of %s", release)
	}
	assert.Equal(t, root.UCP.Capabilities["dev.ucp.shopping.permalink"][0].Config.Endpoint, api+"/ucp/"+s.Key+"/buy", "endpoint of permalinks")
	assert.Equal(t, s.guest(t).send("GET", "/ucp/"+s.Key+"/profiles/2026-01-23", "").Status, 404, "status of a release that is not served")
}
