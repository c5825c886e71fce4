package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"commerce/auth"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/subscriptions"
	"commerce/subscriptions/history"
	"commerce/subscriptions/suite"
)

// sampleOf returns the sample's customers and subscriptions. Those of store 1 belong to store.
func sampleOf(store int64, now time.Time) ([]subscriptions.Customer, []subscriptions.Subscription) {
	customers, all := sample.Customers(), sample.Subscriptions(now)
	for i := range customers {
		if customers[i].StoreID == 1 {
			customers[i].StoreID = store
		}
	}
	for i := range all {
		if all[i].StoreID == 1 {
			all[i].StoreID = store
		}
	}
	return customers, all
}

// pastsOf returns the pasts of what sampleOf returns.
func pastsOf(store int64, now time.Time) []history.Past {
	_, all := sampleOf(store, now)
	pasts := sample.Pasts(now)
	for i := range pasts {
		pasts[i].StoreID = all[i].StoreID
	}
	return pasts
}

func (s *shop) offerSubscriptions(t testing.TB, parts *server.Parts) {
	t.Helper()
	now := time.Now()
	customers, all := sampleOf(s.ID, now)
	tokens := auth.MemoryAPITokens{}
	issue := func(id, store int64, revoked *time.Time) (text string) {
		secret, sum := auth.NewAPISecret()
		tokens[id] = auth.APIToken{ID: id, StoreID: store, Hash: sum, RevokedAt: revoked}
		return strconv.FormatInt(id, 10) + "|" + secret
	}
	s.API, s.Revoked = issue(1, s.ID, nil), issue(2, s.ID, &now)
	memory := suite.NewMemory(customers, all)
	memory.Record(pastsOf(s.ID, now)...)
	serveSource(parts, memory)
	parts.APITokens = auth.NewAPITokens(auth.APITokensConfig{Source: tokens, Stores: parts.Stores})
}

// serveSource adds a source of subscriptions, with all calls.
func serveSource(parts *server.Parts, source suite.Source) {
	parts.Subscriptions, parts.SubscriptionCalls = source, suite.Calls(source)
}

type listBody struct {
	Data    []struct{ ID int64 }
	Path    string
	NextURL string `json:"next_page_url"`
	PrevURL string `json:"prev_page_url"`
	Next    string // a cursor of changes
	HasMore bool   `json:"has_more"`
}

func (a answer) list(t testing.TB) listBody {
	t.Helper()
	return decode[struct{ Data listBody }](t, a.Raw).Data
}

// Each kind of credential works for its own calls only: a store's programs read its
// subscriptions, its customers and guests have carts.
func TestCredentials_WorkForTheirOwnCallsOnly(t *testing.T) {
	shop, other := newShop(t), openShop(t, embeddedRedis(t))
	const cart, merchant, agents = "cart", "merchant", "agents"
	for _, tt := range []struct {
		name          string
		authorization []string
		opens         map[string]bool
	}{
		{"none", nil, map[string]bool{cart: true, agents: true}},
		{"customer", []string{"Bearer " + shop.token(t, "c1")}, map[string]bool{cart: true}},
		{"API token", []string{"Bearer " + shop.API}, map[string]bool{merchant: true}},
		{"expired customer", []string{"Bearer " + shop.expired(t)}, nil},
		{"two in one header", []string{"Bearer " + shop.token(t, "c1") + ", Bearer " + shop.API}, nil},
		{"revoked API token", []string{"Bearer " + shop.Revoked}, nil},
		{"another service's API token", []string{"Bearer " + other.API}, nil},
		{"another store's customer", []string{"Bearer " + other.token(t, "c1")}, nil},
		{"customer without a signature", []string{"Bearer " + strings.TrimRight(shop.token(t, "c1"), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")}, nil},
		{"secret of an API token alone", []string{"Bearer " + shop.API[2:]}, nil},
		{"publishable key", []string{"Bearer " + shop.Key}, nil},
		{"basic, which is for a proxy", []string{"Basic " + shop.API}, map[string]bool{cart: true, agents: true}},
		{"bare", []string{shop.API}, nil},
		{"empty", []string{""}, map[string]bool{cart: true, agents: true}},
		{"both", []string{"Bearer " + shop.API, "Bearer " + shop.token(t, "c1")}, nil},
	} {
		for _, call := range fuzzedCalls() {
			area := cart
			if strings.HasPrefix(call.path, "/subscriptions") {
				area = merchant
			}
			if forAgents(call.path) {
				area = agents
			}
			opens := tt.opens[area] || call.path == "/.well-known/ucp"
			if call.path == "/cart/merge/undo" || call.path == "/cart/events" { // these guests send no cart token
				opens = tt.name == "customer"
			}
			path := strings.NewReplacer("{item_id}", "1", "{id}", "5001", "{key}", shop.Key).Replace(call.path)
			var headers []string
			for _, value := range tt.authorization {
				headers = append(headers, "Authorization", value)
			}
			methods := map[bool][]string{true: {"GET", "HEAD"}, false: {call.method}}[call.method == "GET"]
			for _, method := range methods {
				a := shop.guest(t).send(method, path, call.body, headers...)
				opened := a.Status != http.StatusUnauthorized
				assert.That(t, opened == opens, "%s: %s %s answers %d", tt.name, method, path, a.Status)
				assert.That(t, opened || a.Header.Get("WWW-Authenticate") == "Bearer", "%s: %s %s is refused without a challenge", tt.name, method, path)
			}
		}
	}
}

// A refusal names the parameters that a call accepts: those of the document, whose examples it reads.
func TestSubscriptions_AcceptTheParametersOfTheDocument(t *testing.T) {
	merchant, doc := newShop(t).merchant(t), assert.Must(document())(t)
	for path, item := range doc.Paths.Map() {
		if !strings.HasPrefix(path, "/subscriptions") || path == "/subscriptions/{id}" {
			continue
		}
		var want []string
		for _, p := range item.Get.Parameters {
			if p.Value.In == "query" {
				want = append(want, p.Value.Name)
			}
		}
		refused := merchant.refused(400, "invalid_parameter", "GET", strings.Replace(path, "{id}", "5001", 1)+"?unknown=1", "")
		_, accepted, _ := strings.Cut(strings.TrimSuffix(refused.Body.Message, "."), " accept")
		got := regexp.MustCompile(`[a-zA-Z]\w+`).FindAllString(strings.ReplaceAll(strings.TrimPrefix(accepted, "s no parameters"), " and ", ", "), -1)
		slices.Sort(got)
		slices.Sort(want)
		assert.Equal(t, got, want, "%s accepts (-named +documented)", path)
	}
	for _, c := range subscriptions.Criteria {
		documented := doc.Paths.Value("/subscriptions").Get.Parameters.GetByInAndName("query", c.Name)
		assert.Require(t, documented != nil, "%s is not documented", c.Name)
		example := strings.Trim(strings.ReplaceAll(fmt.Sprint(documented.Example), " ", ","), "[]")
		var f subscriptions.Filter
		assert.That(t, c.Read(&f, example) && len(f.Given()) == 1 && f.Given()[0] == c, "%s does not read its example %q", c.Name, example)
	}
}

// All that the links lead to matches the document, as send checks.
func TestSubscriptions_AreAsDocumented(t *testing.T) {
	t.Parallel()
	for name, public := range map[string]string{"as the request has it": "", "public URL": "https://api.example.com/shop"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := openShop(t, embeddedRedis(t), func(p *server.Parts) { p.PublicURL, p.BasePath = public, "/v1" })
			base := shop.URL
			if public != "" {
				base = public + "/v1"
			}
			seen := 0
			for path := "/subscriptions?per_page=20"; path != ""; {
				a := shop.merchant(t).ok("GET", path, "", "Accept-Language", "ar")
				page := a.list(t)
				assert.Require(t, page.Path == base+"/subscriptions", "GET %s: path %q", path, page.Path)
				for _, s := range page.Data {
					shop.merchant(t).ok("GET", fmt.Sprintf("/subscriptions/%d", s.ID), "")
					seen++
				}
				path = strings.TrimPrefix(page.NextURL, base)
			}
			assert.That(t, seen == 48, "saw %d, want 48", seen)
		})
	}
}

// The summary and its refusals match the document, as send checks.
func TestSubscriptions_SummaryIsAsDocumented(t *testing.T) {
	merchant := newShop(t).merchant(t)
	got := decode[struct {
		Data struct {
			AsOf string `json:"as_of"`
			MRR  []struct{ Currency string }
		}
	}](t, merchant.ok("GET", "/subscriptions/summary", "").Raw).Data
	assert.That(t, len(got.MRR) != 0, "no recurring revenue")
	assert.Must(time.Parse("2006-01-02T15:04:05.000000Z", got.AsOf))(t)
	assert.That(t, len(merchant.ok("HEAD", "/subscriptions/summary", "").Raw) == 0, "HEAD has a body")
	merchant.refused(400, "invalid_parameter", "GET", "/subscriptions/summary?status=active", "").names(t, "status")
}

// The figures in both forms match the document, as send checks.
func TestSubscriptions_MetricsAreAsDocumented(t *testing.T) {
	merchant := newShop(t).merchant(t)
	for accept, want := range map[string]string{
		"application/json": "application/json", "text/csv": "text/csv", "text/csv;q=0.5, application/json": "application/json", "application/x-ndjson": "application/json",
	} {
		a := merchant.ok("GET", "/subscriptions/metrics", "", "Accept", accept)
		assert.That(t, strings.HasPrefix(a.Header.Get("Content-Type"), want+"; charset=utf-8"), "%s: %s", accept, a.Header.Get("Content-Type"))
		assert.Equal(t, strings.Join(a.Header.Values("Vary"), ", "), "Authorization, Accept-Language, Origin, Accept, Accept-Encoding", "%s: Vary", accept)
	}
	merchant.refused(400, "invalid_parameter", "GET", "/subscriptions/metrics?plain=1", "", "Accept", "text/csv").names(t, "plain")
}

// The changes in every form and their refusals match the document, as send checks.
func TestSubscriptions_ChangesAreAsDocumented(t *testing.T) {
	merchant, other := newShop(t).merchant(t), openShop(t, embeddedRedis(t)).merchant(t)
	seen, after := 0, ""
	for more := true; more; {
		p := merchant.ok("GET", "/subscriptions/changes?limit=20"+after, "").list(t)
		assert.Require(t, p.Next != "", "a page without a cursor")
		seen, after, more = seen+len(p.Data), "&after="+p.Next, p.HasMore
	}
	assert.That(t, seen == 48, "saw %d, want 48", seen)
	for _, format := range []string{"application/x-ndjson", "text/csv"} {
		a := merchant.ok("GET", "/subscriptions/changes", "", "Accept", format)
		lines := strings.Count(string(a.Raw), "\n")
		assert.That(t, lines >= 49 && strings.HasPrefix(a.Header.Get("Content-Type"), format), "%s: %d lines of %s", format, lines, a.Header.Get("Content-Type"))
		assert.Equal(t, strings.Join(a.Header.Values("Vary"), ", "), "Authorization, Accept-Language, Origin, Accept, Accept-Encoding", "%s: Vary", format)
		assert.That(t, len(merchant.ok("HEAD", "/subscriptions/changes", "", "Accept", format).Raw) == 0, "HEAD has a body")
		merchant.refused(400, "invalid_parameter", "GET", "/subscriptions/changes?limit=1&wait=1"+after, "", "Accept", format).names(t, "limit", "wait")
	}
	began := time.Now()
	empty := merchant.ok("GET", "/subscriptions/changes?wait=1"+after, "").list(t)
	assert.That(t, len(empty.Data) == 0 && "&after="+empty.Next == after && !empty.HasMore && time.Since(began) >= time.Second, "after %v: %+v", time.Since(began), empty)
	for query, parameters := range map[string][]string{
		"?limit=0": {"limit"}, "?limit=1001": {"limit"}, "?limit=": {"limit"}, "?limit=1&limit=1": {"limit"}, "?limit=01": {"limit"}, "?limit=1.0": {"limit"},
		"?after=": {"after"}, "?after=x&limit=x": {"after", "limit"}, "?" + after + after: {"after"}, "?page=1": {"page"}, "?status=active&Limit=1": {"Limit", "status"},
		"?wait=1": {"wait"}, "?wait=0" + after: {"wait"}, "?wait=31" + after: {"wait"}, "?wait=" + after: {"wait"}, "?wait=1&wait=1" + after: {"wait"},
		"?wait=1.0" + after: {"wait"}, "?wait=30&after=x": {"after"}, "?wait=x&after=": {"after", "wait"}, "?%zz": {"query"},
	} {
		merchant.refused(400, "invalid_parameter", "GET", "/subscriptions/changes"+query, "").names(t, parameters...)
	}
	other.refused(400, "invalid_parameter", "GET", "/subscriptions/changes?"+after, "").names(t, "after")
}
