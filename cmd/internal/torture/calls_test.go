package torture

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	nextPage   = regexp.MustCompile(`"next_page_url":"([^"]+)"`)
	codeOfLink = regexp.MustCompile(`"code":"([^"]+)"`)
)

// call is a call of an endpoint.
type call struct {
	route        string // of the OpenAPI document, "METHOD /path"
	method, path string
	body         string
	headers      []string
	programs     bool // for API tokens
	anyone       bool // needs no credentials
	agents       bool // needs no credentials, and takes no Bearer token

	// alike is a group of calls that differ only in the thing that they name. named is the
	// text of that name, and yours says whether the thing belongs to the visitor. If it does
	// not, the answer must not reveal whether it exists: all answers of the group are equal.
	alike, named string
	yours        func(visitor) bool

	// offered is the owner whose cart the call shows to everyone in its store; nil for none.
	offered *owner

	// expected is the answer to a visitor who is served.
	expected func(v visitor) (status int, code string)
	unmerged func(v visitor) (status int, code string) // the same of a HEAD, which merges nothing; nil: as expected
}

func (c call) String() string { return c.method + " " + c.path }

// changes reports whether the call may change the visitor's own cart.
func (c call) changes() bool { return c.method != "GET" && c.method != "HEAD" }

func always(status int, code string) func(visitor) (int, string) {
	return func(visitor) (int, string) { return status, code }
}

// unless returns the expectation for a call that is refused unless the visitor has what the
// call names.
func unless(yours func(visitor) bool, status int, code string) func(visitor) (int, string) {
	return func(v visitor) (int, string) {
		if yours(v) {
			return 200, ""
		}
		return status, code
	}
}

func inStore(store int64) func(visitor) bool { return func(v visitor) bool { return v.store == store } }

// calls returns calls of all endpoints, with the names of everything that others own.
func (m *mall) calls() []call {
	all := slices.Concat(m.cartReads(), m.cartChanges(), m.itemChanges(), m.subscriptionCalls(), m.agentsCalls(), []call{
		{route: "GET /.well-known/ucp", method: "GET", path: "/.well-known/ucp", anyone: true, expected: func(visitor) (int, string) {
			if m.defaultStore == 0 {
				return 404, "not_found"
			}
			return 200, ""
		}},
		{route: "GET /openapi.yaml", method: "GET", path: "/openapi.yaml", anyone: true, expected: always(200, "")},
		{route: "GET /openapi.json", method: "GET", path: "/openapi.json", anyone: true, expected: always(200, "")},
		{route: "GET /storefront.js", method: "GET", path: "/storefront.js", anyone: true, expected: always(200, "")},
		{route: "-", method: "GET", path: "/nothing", anyone: true, expected: always(404, "not_found")},
		{route: "-", method: "POST", path: "/subscriptions", body: "{}", anyone: true, expected: always(405, "method_not_allowed")},
	})
	for _, c := range slices.Clone(all) {
		if c.method == "GET" {
			c.method = "HEAD"
			if c.unmerged != nil {
				c.expected = c.unmerged
			}
			all = append(all, c)
		}
	}
	return all
}

func (m *mall) cartReads() []call {
	reaches := func(v visitor) bool { return len(m.reaches(v)) > 0 }
	calls := []call{
		{path: "/cart/count", expected: always(200, "")},
		{path: "/cart/summary", expected: always(200, "")},
		{
			path: "/cart/validate", expected: unless(reaches, 400, "cart_invalid"),
			unmerged: unless(func(v visitor) bool { return reaches(visitor{cart: v.cart}) }, 400, "cart_invalid"),
		},
		{path: "/cart", expected: always(200, ""), alike: "cart", yours: reaches},
	}
	events := call{route: "GET /cart/events", method: "HEAD", path: "/cart/events", expected: func(v visitor) (int, string) {
		switch {
		case v.cart == cartOf{}:
			return 401, "unauthenticated"
		case reaches(visitor{cart: v.cart}):
			return 200, ""
		}
		return 404, "not_found"
	}}
	for _, o := range m.owners {
		calls = append(calls, call{
			path: "/cart", headers: []string{"If-None-Match", o.etag},
			expected: func(v visitor) (int, string) {
				if v.cart == o.cart && !m.merges(v) {
					return 304, ""
				}
				return 200, ""
			},
			unmerged: func(v visitor) (int, string) {
				if v.cart == o.cart {
					return 304, ""
				}
				return 200, ""
			},
		})
	}
	for i := range calls {
		calls[i].method, calls[i].route = "GET", "GET "+calls[i].path
	}
	return append(calls, events)
}

func (m *mall) cartChanges() []call {
	calls := []call{
		{method: "DELETE", path: "/cart/clear", expected: always(200, "")},
		{method: "DELETE", path: "/cart/coupon", expected: always(200, "")},
		{method: "POST", path: "/cart/coupon", body: `{"coupon":"TEN"}`, expected: unless(inStore(storeOne), 422, "coupon_invalid")},
		{
			method: "POST", path: "/cart/ops", body: `{"ops":[{"op":"coupon","coupon":null},{"op":"add","product_id":1001}]}`,
			expected: unless(inStore(storeOne), 404, "product_not_found"),
		},
		{
			method: "POST", path: "/cart/merge/undo", body: `{"id":"5APZMAR32G"}`,
			expected: func(v visitor) (int, string) {
				if v.cart.sub == "" {
					return 401, "unauthenticated"
				}
				return 404, "not_found"
			},
		},
	}
	calls = append(calls, m.handovers()...)
	for product, store := range map[string]int64{"1001": storeOne, "2010": storeTwo, "9999": 0} {
		calls = append(calls, call{
			method: "POST", path: "/cart/add", body: `{"product_id":` + product + `}`, expected: unless(inStore(store), 404, "product_not_found"),
			alike: "product", named: product, yours: inStore(store),
		})
	}
	for _, o := range m.owners {
		current := func(v visitor) bool { return v.cart == o.cart && !m.merges(v) }
		calls = append(calls, call{
			method: "DELETE", path: "/cart/clear", headers: []string{"If-Match", o.etag},
			expected: unless(current, 412, "version_mismatch"),
		}, call{ // no other owner has used this key
			method: "POST", path: "/cart/add", body: `{"product_id":1002}`, headers: []string{"Idempotency-Key", plantedKey + o.slug()},
			expected: func(v visitor) (int, string) {
				switch {
				case o.has(v.cart), o.cart == v.guest:
					return 409, "idempotency_conflict"
				case v.store != storeOne:
					return 404, "product_not_found"
				}
				return 200, ""
			},
		})
	}
	for i := range calls {
		calls[i].route = calls[i].method + " " + calls[i].path
	}
	return append(calls, m.shares()...)
}

// handovers returns calls that hand the visitor's cart over, and that show the carts of all codes.
func (m *mall) handovers() []call {
	calls := []call{{method: "POST", path: "/cart/handover", expected: func(v visitor) (int, string) {
		switch {
		case v.cart.sub != "":
			return 422, "guest_only"
		case len(m.reaches(v)) == 0:
			return 422, "cart_empty"
		}
		return 200, ""
	}}}
	offer := func(code string, o *owner) {
		yours := func(v visitor) bool { return o != nil && v.store == o.cart.store && v.guest != o.cart } // not merged by this call
		calls = append(calls, call{
			method: "POST", path: "/cart/handover/redeem", body: fmt.Sprintf(`{"code":%q,"preview":true}`, code),
			expected: unless(yours, 404, "not_found"), alike: "code", named: code, yours: yours, offered: o,
		})
	}
	for _, o := range m.owners {
		if o.code != "" {
			offer(o.code, o)
			offer(o.code+"A", nil)
		}
	}
	return calls
}

// shares returns calls that share the visitor's cart, and that show or delete the shares of all owners.
func (m *mall) shares() []call {
	reaches := func(v visitor) bool { return len(m.reaches(v)) > 0 }
	calls := []call{{route: "POST /cart/share", method: "POST", path: "/cart/share", expected: unless(reaches, 422, "cart_empty")}}
	named := func(code string, o *owner) {
		shown := func(v visitor) bool { return o != nil && v.store == o.cart.store }
		made := func(v visitor) bool { return o != nil && (v.cart == o.cart || v.guest == o.cart) }
		calls = append(calls, call{
			route: "GET /cart/share/{code}", method: "GET", path: "/cart/share/" + code,
			expected: unless(shown, 404, "not_found"), alike: "share", named: code, yours: shown, offered: o,
		}, call{
			route: "DELETE /cart/share/{code}", method: "DELETE", path: "/cart/share/" + code,
			expected: unless(made, 404, "not_found"), alike: "deleted share", named: code, yours: made,
		})
	}
	for _, o := range m.owners {
		named(o.share, o)
		named(o.share[:len(o.share)-4]+"AAAA", nil)
	}
	return calls
}

// itemChanges returns calls that edit and remove the lines of all owners, and a line that
// nobody has.
func (m *mall) itemChanges() []call {
	items := []int64{9999}
	for _, o := range m.owners {
		items = append(items, o.product)
	}
	var calls []call
	for _, item := range items {
		named := fmt.Sprint(item)
		yours := func(v visitor) bool {
			return slices.ContainsFunc(m.reaches(v), func(o *owner) bool { return o.product == item })
		}
		calls = append(calls, call{
			route: "PATCH /cart/items/{item_id}", method: "PATCH", path: "/cart/items/" + named, body: `{"quantity":3}`,
			expected: unless(yours, 404, "item_not_found"), alike: "edited line", named: named, yours: yours,
		}, call{
			route: "DELETE /cart/items/{item_id}", method: "DELETE", path: "/cart/items/" + named,
			expected: always(200, ""), alike: "removed line", named: named, yours: yours,
		})
	}
	return calls
}

var (
	agentsID    = regexp.MustCompile(`"id":"(\w{30})"`)
	agentHeader = []string{"Content-Type", "application/json", "UCP-Agent", `profile="https://platform.example/"`}
)

// agentsCalls returns calls that name the cart of store 1's agent, or none, in the other store.
func (m *mall) agentsCalls() []call {
	nobody := func(visitor) bool { return false }
	base := "/ucp/" + storeTwoKey
	calls := []call{{route: "POST /ucp/{key}/carts", method: "POST", path: base + "/carts", body: `{"line_items":[{"item":{"id":"1015"},"quantity":1}]}`, expected: always(200, "item_unavailable")}}
	for _, id := range []string{m.agentsCart, m.agentsCart[:26] + "AAAA"} {
		tool := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_cart","arguments":{"id":%q,"meta":{"ucp-agent":{"profile":"https://platform.example/"}}}}}`, id)
		for _, c := range []call{
			{route: "GET /ucp/{key}/carts/{id}", path: base + "/carts/" + id},
			{route: "PUT /ucp/{key}/carts/{id}", path: base + "/carts/" + id, body: `{"line_items":[]}`},
			{route: "POST /ucp/{key}/carts/{id}/cancel", path: base + "/carts/" + id + "/cancel", body: `{}`},
			{route: "POST /ucp/{key}/mcp", path: base + "/mcp", body: tool},
		} {
			c.method, _, _ = strings.Cut(c.route, " ")
			c.expected, c.alike, c.named, c.yours = always(200, "not_found"), "agent's cart: "+c.route, id, nobody
			calls = append(calls, c)
		}
	}
	for i := range calls {
		calls[i].agents, calls[i].headers = true, agentHeader
	}
	return calls
}

func (m *mall) subscriptionCalls() []call {
	calls := []call{
		{path: "/subscriptions", expected: always(200, "")},
		{path: "/subscriptions/summary", expected: always(200, "")},
		{path: "/subscriptions/metrics", expected: always(200, "")},
		{path: "/subscriptions/changes?limit=1000", expected: always(200, "")},
		{path: "/subscriptions/changes", headers: []string{"Accept", "application/x-ndjson"}, expected: always(200, "")},
		{path: "/subscriptions/changes", headers: []string{"Accept", "text/csv"}, expected: always(200, "")},
		{path: "/subscriptions/900009", expected: always(200, "")},
		{path: "/subscriptions/900009/history", expected: always(200, "")},
	}
	for store, p := range m.programsAndNobody() {
		yours, id, external := inStore(store), fmt.Sprint(p.subscription), fmt.Sprint("planted-external-", store)
		missing, refused := unless(yours, 404, "subscription_not_found"), unless(yours, 400, "invalid_parameter")
		calls = append(calls,
			call{path: "/subscriptions/" + id, alike: "subscription", named: id, yours: yours, expected: missing},
			call{path: "/subscriptions/" + id + "/history", alike: "history", named: id, yours: yours, expected: missing},
			call{path: "/subscriptions?" + p.link, alike: "page link", named: p.link, yours: yours, expected: refused},
			call{path: "/subscriptions/changes?" + p.cursor, alike: "cursor", named: p.cursor, yours: yours, expected: refused},
			call{path: "/subscriptions?customerEmail=" + p.email, alike: "e-mail", named: p.email, yours: yours, expected: always(200, "")},
			call{path: "/subscriptions?externalCustomerId=" + external, alike: "external id", named: external, yours: yours, expected: always(200, "")})
	}
	for i := range calls {
		path, _, _ := strings.Cut(calls[i].path, "?")
		calls[i].method, calls[i].programs = "GET", true
		calls[i].route = "GET " + subscriptionID.ReplaceAllString(path, "/subscriptions/{id}")
	}
	return calls
}

var subscriptionID = regexp.MustCompile(`^/subscriptions/\d+`)

// programsAndNobody returns the programs by store. Store 0 has made-up values that no store
// has.
func (m *mall) programsAndNobody() map[int64]*program {
	madeUp := func(text string) string { return text[:len(text)-4] + "AAAA" }
	return map[int64]*program{
		storeOne: m.programs[storeOne], storeTwo: m.programs[storeTwo],
		0: {
			subscription: 123456789, email: "planted-store-0@example.com",
			link: madeUp(m.programs[storeOne].link), cursor: madeUp(m.programs[storeOne].cursor),
		},
	}
}

// reaches returns the owners whose lines are in the visitor's cart when the call is served.
func (m *mall) reaches(v visitor) []*owner {
	var found []*owner
	for _, o := range m.owners {
		if o.cart == v.cart || o.cart == v.guest {
			found = append(found, o)
		}
	}
	return found
}

// merges reports whether the visitor's call merges a guest's cart.
func (m *mall) merges(v visitor) bool {
	return slices.ContainsFunc(m.owners, func(o *owner) bool { return o.cart == v.guest })
}
