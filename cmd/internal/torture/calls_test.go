package torture

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// call is a call of an endpoint.
type call struct {
	method, path, body string
	headers            []string
	by                 callers

	// alike is a group of calls that differ only in the thing that they name. named is the
	// text of that name, and yours says whether the thing belongs to the visitor. If it does
	// not, the answer must not reveal whether it exists: all answers of the group are equal.
	alike, named string
	yours        func(visitor) bool

	// offered is the owner whose cart the call shows to everyone in its store; nil for none.
	offered *owner

	// expected is the answer to a visitor who is served. The visitor of a HEAD, which merges nothing, has no guest's cart.
	expected func(v visitor) (status int, code string)
}

type callers string

const (
	shoppers callers = ""         // with the tokens of a guest or a customer
	programs callers = "programs" // with API tokens
	anyone   callers = "anyone"   // without credentials
	agents   callers = "agents"   // without credentials, but no Bearer token either
)

func (c call) String() string { return c.method + " " + c.path }

// changes reports whether the call may change the visitor's own cart.
func (c call) changes() bool { return c.method != "GET" && c.method != "HEAD" }

// route is the endpoint in the OpenAPI document.
func (c call) route() string {
	path, _, _ := strings.Cut(c.path, "?")
	for _, part := range routeParts {
		path = part.text.ReplaceAllString(path, part.route)
	}
	return c.method + " " + path
}

var routeParts = []struct {
	text  *regexp.Regexp
	route string
}{
	{regexp.MustCompile(`^/subscriptions/\d+`), "/subscriptions/{id}"},
	{regexp.MustCompile(`^/cart/items/.+`), "/cart/items/{item_id}"},
	{regexp.MustCompile(`^/cart/share/.+`), "/cart/share/{code}"},
	{regexp.MustCompile(`^/ucp/\w+`), "/ucp/{key}"},
	{regexp.MustCompile(`/carts/\w+`), "/carts/{id}"},
	{regexp.MustCompile(`/profiles/[\d-]+`), "/profiles/{release}"},
	{regexp.MustCompile(`/buy/.+`), "/buy/{items}"},
}

func always(status int, code string) func(visitor) (int, string) {
	return func(visitor) (int, string) { return status, code }
}

// unless returns the expectation for a call that is refused unless the visitor has what the
// call names.
func unless(yours func(visitor) bool, status int, code string) func(visitor) (int, string) {
	return func(v visitor) (int, string) {
		if yours(v) {
			return http.StatusOK, ""
		}
		return status, code
	}
}

func inStore(store int64) func(visitor) bool { return func(v visitor) bool { return v.store == store } }

// reaches returns the owners whose lines are in the visitor's cart when the call is served.
func (m *mall) reaches(v visitor) (found []*owner) {
	for _, o := range m.owners {
		if o.cart == v.cart || o.cart == v.guest {
			found = append(found, o)
		}
	}
	return found
}

func (m *mall) hasLines(v visitor) bool { return len(m.reaches(v)) > 0 }

// merges reports whether the visitor's call merges a guest's cart.
func (m *mall) merges(v visitor) bool {
	return slices.ContainsFunc(m.owners, func(o *owner) bool { return o.cart == v.guest })
}

// calls returns calls of all endpoints, with the names of everything that others own.
func (m *mall) calls() []call {
	isGuest := func(v visitor) bool { return v.cart.sub == "" }
	isCustomer := func(v visitor) bool { return !isGuest(v) }
	all := slices.Concat(m.namedLines(), m.namedCarts(), m.namedCodes(), m.agentsCalls(), m.subscriptionCalls(), []call{
		{method: "GET", path: "/cart", expected: always(200, ""), alike: "cart", yours: m.hasLines},
		{method: "GET", path: "/cart/count", expected: always(200, "")},
		{method: "GET", path: "/cart/summary", expected: always(200, "")},
		{method: "GET", path: "/cart/validate", expected: unless(m.hasLines, 400, "cart_invalid")},
		{method: "DELETE", path: "/cart/clear", expected: always(200, "")},
		{method: "DELETE", path: "/cart/coupon", expected: always(200, "")},
		{method: "POST", path: "/cart/coupon", body: `{"coupon":"TEN"}`, expected: unless(inStore(storeOne), 422, "coupon_invalid")},
		{
			method: "POST", path: "/cart/ops", body: `{"ops":[{"op":"coupon","coupon":null},{"op":"add","product_id":1001}]}`,
			expected: unless(inStore(storeOne), 404, "product_not_found"),
		},
		{method: "POST", path: "/cart/merge/undo", body: `{"id":"5APZMAR32G"}`, expected: first(
			unless(isCustomer, 401, "unauthenticated"), always(404, "not_found"))},
		{method: "POST", path: "/cart/handover", expected: first(unless(isGuest, 422, "guest_only"), unless(m.hasLines, 422, "cart_empty"))},
		{method: "POST", path: "/cart/share", expected: unless(m.hasLines, 422, "cart_empty")},
		{method: "GET", path: "/openapi.yaml", by: anyone, expected: always(200, "")},
		{method: "GET", path: "/openapi.json", by: anyone, expected: always(200, "")},
		{method: "GET", path: "/storefront.js", by: anyone, expected: always(200, "")},
		{method: "GET", path: "/nothing", by: anyone, expected: always(404, "not_found")},
		{method: "POST", path: "/subscriptions", body: "{}", by: anyone, expected: always(405, "method_not_allowed")},
		{method: "GET", path: "/.well-known/ucp", by: anyone, expected: unless(func(visitor) bool { return m.defaultStore != 0 }, 404, "not_found")},
	})
	for _, c := range slices.Clone(all) {
		if c.method == "GET" {
			c.method = "HEAD"
			all = append(all, c)
		}
	}
	return append(all, call{method: "HEAD", path: "/cart/events", expected: first(
		unless(func(v visitor) bool { return v.cart != cartOf{} }, 401, "unauthenticated"), unless(m.hasLines, 404, "not_found"))})
}

// first returns the first refusal of several expectations, in their order.
func first(all ...func(visitor) (int, string)) func(visitor) (int, string) {
	return func(v visitor) (status int, code string) {
		for _, expected := range all {
			if status, code = expected(v); status != http.StatusOK {
				break
			}
		}
		return status, code
	}
}

// namedLines returns calls that add products of all stores, and edit and remove the lines of all owners. Nobody has 9999.
func (m *mall) namedLines() (calls []call) {
	for product, store := range map[string]int64{"1001": storeOne, "2010": storeTwo, "9999": 0} {
		calls = append(calls, call{
			method: "POST", path: "/cart/add", body: `{"product_id":` + product + `}`, expected: unless(inStore(store), 404, "product_not_found"),
			alike: "product", named: product, yours: inStore(store),
		})
	}
	for _, o := range append(m.owners, &owner{product: 9999}) {
		named := fmt.Sprint(o.product)
		yours := func(v visitor) bool {
			return slices.ContainsFunc(m.reaches(v), func(reached *owner) bool { return reached.product == o.product })
		}
		calls = append(calls, call{
			method: "PATCH", path: "/cart/items/" + named, body: `{"quantity":3}`,
			expected: unless(yours, 404, "item_not_found"), alike: "edited line", named: named, yours: yours,
		}, call{
			method: "DELETE", path: "/cart/items/" + named,
			expected: always(200, ""), alike: "removed line", named: named, yours: yours,
		})
	}
	return calls
}

// namedCarts returns calls with the tags and the idempotency keys of all owners.
func (m *mall) namedCarts() (calls []call) {
	for _, o := range m.owners {
		other := func(v visitor) bool { return v.cart != o.cart || m.merges(v) }
		current := func(v visitor) bool { return !other(v) }
		unused := func(v visitor) bool { return !o.has(v.cart) && o.cart != v.guest } // no other owner has used this key
		calls = append(calls, call{
			method: "GET", path: "/cart", headers: []string{"If-None-Match", o.etag}, expected: unless(other, 304, ""),
		}, call{
			method: "DELETE", path: "/cart/clear", headers: []string{"If-Match", o.etag}, expected: unless(current, 412, "version_mismatch"),
		}, call{
			method: "POST", path: "/cart/add", body: `{"product_id":1002}`, headers: []string{"Idempotency-Key", plantedKey + o.slug()},
			expected: first(unless(unused, 409, "idempotency_conflict"), unless(inStore(storeOne), 404, "product_not_found")),
		})
	}
	return calls
}

// namedCodes returns calls that show the carts and shares of all codes, and delete the shares.
func (m *mall) namedCodes() (calls []call) {
	add := func(o *owner, real bool, group, code string, yours func(visitor) bool, c call) {
		c.alike, c.named = group, code
		c.yours = func(v visitor) bool { return real && yours(v) }
		c.expected = unless(c.yours, http.StatusNotFound, "not_found")
		if real && c.method != "DELETE" {
			c.offered = o
		}
		calls = append(calls, c)
	}
	for _, o := range m.owners {
		inItsStore := inStore(o.cart.store)
		unmerged := func(v visitor) bool { return inItsStore(v) && v.guest != o.cart } // not merged by this call
		made := func(v visitor) bool { return v.cart == o.cart || v.guest == o.cart }
		for real, share := range map[bool]string{true: o.share, false: o.share[:len(o.share)-4] + "AAAA"} {
			add(o, real, "share", share, inItsStore, call{method: "GET", path: "/cart/share/" + share})
			add(o, real, "deleted share", share, made, call{method: "DELETE", path: "/cart/share/" + share})
		}
		for real, code := range map[bool]string{true: o.code, false: o.code + "A"} {
			if o.code != "" {
				add(o, real, "code", code, unmerged, call{method: "POST", path: "/cart/handover/redeem", body: fmt.Sprintf(`{"code":%q,"preview":true}`, code)})
			}
		}
	}
	return calls
}

var (
	agentsID    = regexp.MustCompile(`"id":"(\w{30})"`)
	agentHeader = []string{"Content-Type", "application/json", "UCP-Agent", `profile="https://platform.example/"`}
)

// agentsCalls returns calls that name the cart of store 1's agent, or none, in the other store.
func (m *mall) agentsCalls() []call {
	base := "/ucp/" + storeTwoKey
	calls := []call{
		{method: "POST", path: base + "/carts", body: `{"line_items":[{"item":{"id":"1015"},"quantity":1}]}`, expected: always(200, "item_unavailable")},
		{method: "GET", path: base + "/profiles/2026-08-25", expected: always(200, "")},
		{method: "GET", path: base + "/buy/1001:1", expected: always(404, "not_found")}, // the store has no cart_url
	}
	for _, id := range []string{m.agentsCart, m.agentsCart[:26] + "AAAA"} {
		tool := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_cart","arguments":{"id":%q,"meta":{"ucp-agent":{"profile":"https://platform.example/"}}}}}`, id)
		for _, c := range []call{
			{method: "GET", path: base + "/carts/" + id},
			{method: "PUT", path: base + "/carts/" + id, body: `{"line_items":[]}`},
			{method: "POST", path: base + "/carts/" + id + "/cancel", body: `{}`},
			{method: "POST", path: base + "/mcp", body: tool},
		} {
			c.expected, c.alike, c.named = always(200, "not_found"), "agent's cart: "+c.route(), id
			c.yours = func(visitor) bool { return false }
			calls = append(calls, c)
		}
	}
	for i := range calls {
		calls[i].by, calls[i].headers = agents, agentHeader
	}
	return calls
}

func (m *mall) subscriptionCalls() []call {
	var calls []call
	for _, path := range []string{"", "/summary", "/metrics", "/changes?limit=1000", "/events?limit=1000", "/900009", "/900009/history"} {
		calls = append(calls, call{path: path, expected: always(200, "")})
	}
	for _, format := range []string{"application/x-ndjson", "text/csv"} {
		calls = append(calls, call{path: "/changes", headers: []string{"Accept", format}, expected: always(200, "")})
	}
	for store, p := range m.programsAndNobody() {
		yours, id, external := inStore(store), fmt.Sprint(p.subscription), fmt.Sprint("planted-external-", store)
		missing, refused := unless(yours, 404, "subscription_not_found"), unless(yours, 400, "invalid_parameter")
		calls = append(calls,
			call{path: "/" + id, alike: "subscription", named: id, yours: yours, expected: missing},
			call{path: "/" + id + "/history", alike: "history", named: id, yours: yours, expected: missing},
			call{path: "?" + p.link, alike: "page link", named: p.link, yours: yours, expected: refused},
			call{path: "/changes?" + p.cursor, alike: "cursor", named: p.cursor, yours: yours, expected: refused},
			call{path: "?customerEmail=" + p.email, alike: "e-mail", named: p.email, yours: yours, expected: always(200, "")},
			call{path: "?externalCustomerId=" + external, alike: "external id", named: external, yours: yours, expected: always(200, "")})
	}
	for i := range calls {
		calls[i].method, calls[i].path, calls[i].by = "GET", "/subscriptions"+calls[i].path, programs
	}
	return calls
}

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
