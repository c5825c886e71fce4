package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"commerce/deploy/assert"
	"commerce/deploy/sample"
)

type demoClient struct {
	*running
	offered demoOffer
}

// demoOffer is playground/demo.json, with the names that the page reads.
type demoOffer struct {
	CustomerJWT string `json:"customer_jwt"`
	APIToken    string `json:"api_token"`
	Customers   []struct {
		ID   string
		Name map[string]string
		JWT  string
	}
	ExpiredJWT    string `json:"expired_jwt"`
	LongListToken string `json:"long_list_token"`
	Backstage     bool
	Agent         bool
}

func openDemo(t *testing.T, settings ...string) demoClient {
	t.Helper()
	d := demoClient{running: start(t, "demo", settings...)}
	d.offered = decoded[demoOffer](t, d.send(t, "GET", "/playground/demo.json", ""))
	return d
}

func data[T any](t *testing.T, a answer) T {
	t.Helper()
	assert.Require(t, a.Status == http.StatusOK, "%d %s", a.Status, a.Body)
	return decoded[struct{ Data T }](t, a).Data
}

type demoCart struct {
	Items []struct {
		UnitPrice json.Number `json:"unit_price"`
		Image     struct {
			URL      string
			FullLink string `json:"full_link"`
		}
		Product struct {
			Price struct{ Original, Actual json.Number }
			Stock struct {
				Available *int64
				Unlimited bool
			}
		}
	}
}

func TestDemo_OffersCustomersToItsPage(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	var ids []string
	for _, c := range d.offered.Customers {
		ids = append(ids, c.ID)
		assert.That(t, c.Name["en"] != "" && c.Name["ar"] != "", "customer %s is called %v", c.ID, c.Name)
		a := d.send(t, "GET", "/cart", "", "Authorization", "Bearer "+c.JWT)
		assert.That(t, a.Status == http.StatusOK, "customer %s: %d %s", c.ID, a.Status, a.Body)
	}
	assert.Equal(t, ids, []string{"1001", "1002", "1003", "1004"}, "customers")
	assert.That(t, d.offered.CustomerJWT == d.offered.Customers[0].JWT && d.offered.Backstage, "offers %+v", d.offered)
	a := d.send(t, "GET", "/cart", "", "Authorization", "Bearer "+d.offered.ExpiredJWT)
	assert.That(t, a.Status == http.StatusUnauthorized && strings.Contains(a.Body, "expired"), "expired: %+v", a)
}

// A website can let its name lead to 127.0.0.1, and read what a browser on this machine may read.
func TestDemo_OnLoopbackServesNoOtherHost(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	for _, url := range []string{d.URL + "/playground/demo.json", d.admin + "/version", d.admin + "/debug/pprof/"} {
		for host, status := range map[string]int{
			"localhost": 200, "LOCALHOST:9090": 200, "127.0.0.1:9090": 200, "[::1]:9090": 200,
			"rebound.example.com": 400, "127.0.0.1.example.com:9090": 400, "0.0.0.0:9090": 400, "192.168.1.2:9090": 400,
		} {
			r := assert.Must(http.NewRequestWithContext(t.Context(), "GET", url, nil))(t)
			r.Host = host
			response := assert.Must(http.DefaultClient.Do(r))(t)
			response.Body.Close()
			assert.Equal(t, response.StatusCode, status, "%s for the host %s", url, host)
		}
	}
}

func TestDemo_HasAStoreWithManyPages(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	type page struct {
		Data []struct{ ID int64 }
		To   *int
		Next *string `json:"next_page_url"`
	}
	for number, rows := range map[int]int{1: 15, 1000: 15, 1334: 5} {
		path := fmt.Sprintf("/subscriptions?page=%d", number)
		p := data[page](t, d.send(t, "GET", path, "", "Authorization", "Bearer "+d.offered.LongListToken))
		assert.That(t, len(p.Data) == rows && *p.To == 15*(number-1)+rows && (p.Next == nil) == (number == 1334),
			"page %d: %d rows to %d, next %v", number, len(p.Data), *p.To, p.Next)
	}
	p := data[page](t, d.send(t, "GET", "/subscriptions?per_page=100", "", "Authorization", "Bearer "+d.offered.APIToken))
	assert.That(t, len(p.Data) == 48, "the sample store has %d subscriptions, want 48", len(p.Data))
}

// The sample's products have pictures also in serve, which has no playground.
func TestSample_HasPicturesOfItsProducts(t *testing.T) {
	t.Parallel()
	serve := startServe(t, seeded(t), "BASE_PATH=/shop", "DEFAULT_STORE=1")
	serve.URL += "/shop" // the demo prints it
	for _, tt := range []struct {
		*running
		basePath string
	}{{start(t, "demo"), ""}, {start(t, "demo", "BASE_PATH=/shop", "PLAYGROUND=off"), "/shop"}, {serve, "/shop"}} {
		image := data[demoCart](t, tt.send(t, "POST", "/cart/add", `{"product_id":1}`)).Items[0].Image
		assert.Equal(t, image.URL, tt.basePath+"/playground/pictures/game-credit.svg", "url")
		assert.Equal(t, image.FullLink, tt.URL+"/playground/pictures/game-credit.svg", "full_link")
		for store, products := range sample.Products() {
			for _, p := range products {
				a := tt.send(t, "GET", p.Image.URL, "")
				assert.That(t, a.Status == http.StatusOK && a.Header.Get("Content-Type") == "image/svg+xml" &&
					a.Header.Get("Cross-Origin-Resource-Policy") == "cross-origin", // pages of others may show it
					"%s%s of store %d: %d %v", tt.URL, p.Image.URL, store, a.Status, a.Header)
			}
		}
	}
}

func (d demoClient) copyProduct(t *testing.T) string {
	t.Helper()
	return data[struct{ ID json.Number }](t, d.send(t, "POST", "/playground/products/1", `{}`)).ID.String()
}

func TestDemo_BackstageChangesACopyOfAProduct(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	id := d.copyProduct(t)
	added := d.send(t, "POST", "/cart/add", `{"product_id":`+id+`}`)
	token := added.Header.Get("X-Cart-Token")
	for _, step := range []struct{ body, price, stock string }{
		{`{"price":59.5}`, "59.5", "null"},
		{`{"stock":1,"other":true}`, "59.5", "1"},
		{`{"price":4.0e1,"stock":null}`, "40", "null"},
		{`{"price":0,"stock":0}`, "0", "0"},
	} {
		got := data[json.RawMessage](t, d.send(t, "PATCH", "/playground/products/"+id, step.body))
		assert.Equal(t, string(got), `{"id":`+id+`,"price":`+step.price+`,"stock":`+step.stock+`}`, "%s", step.body)
		item := data[demoCart](t, d.send(t, "GET", "/cart", "", "X-Cart-Token", token)).Items[0]
		price, stock := item.Product.Price, item.Product.Stock
		assert.That(t, item.UnitPrice.String() == step.price && price.Original == price.Actual,
			"%s: the cart has %s, original %s, actual %s", step.body, item.UnitPrice, price.Original, price.Actual)
		unlimited := step.stock == "null"
		assert.That(t, stock.Unlimited == unlimited && (unlimited || fmt.Sprint(*stock.Available) == step.stock),
			"%s: the cart has stock %+v", step.body, stock)
	}
	assert.Equal(t, d.price(t, "1"), "49.5", "price of the product")
}

// price is what a new cart says about a product, "" if the store has none.
func (d demoClient) price(t *testing.T, id string) string {
	t.Helper()
	added := d.send(t, "POST", "/cart/add", `{"product_id":`+id+`}`)
	if len(added.Data.Items) == 0 {
		return ""
	}
	return added.Data.Items[0].UnitPrice.String()
}

func TestDemo_BackstageKeepsTheNewestCopies(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	first, second := d.copyProduct(t), d.copyProduct(t)
	for range 99 {
		d.copyProduct(t)
	}
	assert.Equal(t, []string{d.price(t, first), d.price(t, second), d.price(t, "1")}, []string{"", "49.5", "49.5"}, "prices")
}

func TestDemo_BackstageRefusesBadProducts(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	copied := "/" + d.copyProduct(t)
	for _, tt := range []struct {
		path, body, code string
		status           int
		members          []string
	}{
		{copied, `{}`, "validation_failed", 422, []string{"price"}},
		{copied, `{"other":1}`, "validation_failed", 422, []string{"price"}},
		{copied, `{"price":-1,"stock":-1}`, "validation_failed", 422, []string{"price", "stock"}},
		{copied, `{"price":"1","stock":1.5}`, "validation_failed", 422, []string{"price", "stock"}},
		{copied, `{"price":1.005}`, "validation_failed", 422, []string{"price"}},
		{copied, `{"price":null}`, "validation_failed", 422, []string{"price"}},
		{copied, `{"price":1e30}`, "validation_failed", 422, []string{"price"}},
		{copied, `{"stock":1e30}`, "validation_failed", 422, []string{"stock"}},
		{copied, `[]`, "malformed_json", 400, nil},
		{copied, `{"price":1,"price":2}`, "malformed_json", 400, []string{"price"}},
		{copied, `{"price":1,"other":"` + strings.Repeat("x", 64<<10) + `"}`, "body_too_large", 413, nil},
		{"/1", `{"price":1}`, "product_not_found", 404, nil}, // every visitor sees it
		{"/1000404", `{"price":1}`, "product_not_found", 404, nil},
		{"/one", `{"price":1}`, "product_not_found", 404, nil},
	} {
		a := d.send(t, "PATCH", "/playground/products"+tt.path, tt.body)
		refusal := decoded[struct{ Errors map[string][]string }](t, a)
		assert.That(t, a.Status == tt.status && a.Code == tt.code && a.Message != "" && len(refusal.Errors) == len(tt.members),
			"%.40s: %d %s; want %d %s", tt.body, a.Status, a.Body, tt.status, tt.code)
		for _, member := range tt.members {
			assert.That(t, refusal.Errors[member] != nil, "%.40s: %v, want %s", tt.body, refusal.Errors, member)
		}
	}
	a := d.send(t, "POST", "/playground/products/21", `{}`) // of another store
	assert.That(t, a.Status == http.StatusNotFound && a.Code == "product_not_found", "another store's: %d %s", a.Status, a.Body)
	a = d.send(t, "PATCH", "/playground/products"+copied, `{"price":1}`, "Content-Type", "text/plain")
	assert.That(t, a.Status == http.StatusUnsupportedMediaType, "as text: %d %s", a.Status, a.Body)
}

// The demo's agent is a program on its machine, which names the profile that the demo serves.
func TestDemo_BackstageMakesAnAgentsCalls(t *testing.T) {
	t.Parallel()
	d := openDemo(t, "BASE_PATH=/shop")
	assert.That(t, d.offered.Agent && !openDemo(t, "UCP=off").offered.Agent, "offers %+v", d.offered)
	for _, tt := range []struct {
		method, path, shows string
		status              int // 0: the call is refused
	}{
		{"GET", "/.well-known/ucp", `/shop/ucp/pk_demo"`, 200},
		{"POST", "/shop/ucp/pk_demo/carts", `"title":"Game credit"`, 201},
		{"GET", "/shop/ucp/pk_demo/carts/none", `"not_found"`, 200},
		{"GET", "/shop/cart", "", 0},
		{"GET", "/shop/ucp/pk_demo/carts/../../cart", "", 0},
		{"GET", "@elsewhere.example.com/ucp/pk_demo/carts", "", 0},
		{"G T", "/.well-known/ucp", "", 0},
	} {
		call := map[string]any{"method": tt.method, "path": tt.path, "headers": map[string]string{
			"UCP-Agent": `profile="` + d.URL + `/playground/agent.json"`, "Content-Type": "application/json",
		}}
		if tt.method == "POST" {
			call["body"] = `{"line_items":[{"item":{"id":"1"},"quantity":1}]}`
		}
		a := d.send(t, "POST", "/playground/agent", string(assert.Must(json.Marshal(call))(t)))
		if tt.status == 0 {
			assert.That(t, a.Status == 422 && a.Code == "validation_failed", "%s %s: %d %s", tt.method, tt.path, a.Status, a.Body)
			continue
		}
		got := data[struct {
			Status int
			Body   string
		}](t, a)
		assert.That(t, got.Status == tt.status && strings.Contains(got.Body, tt.shows), "%s %s: %+v", tt.method, tt.path, got)
	}
}

func TestDemo_OffersItsAgentOnlyToThisMachine(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	assert.That(t, d.offered.Agent, "offers no agent")
	elsewhere := decoded[demoOffer](t, d.send(t, "GET", "/playground/demo.json", "", "X-Forwarded-For", "192.0.2.1"))
	a := d.send(t, "POST", "/playground/agent", `{"method":"GET","path":"/.well-known/ucp"}`, "X-Forwarded-For", "192.0.2.1")
	assert.That(t, !elsewhere.Agent && a.Status == http.StatusNotFound, "elsewhere: %+v, %d %s", elsewhere, a.Status, a.Body)
}

func TestDemo_BackstageBillsOneSubscriptionAtATime(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	type changes struct {
		Data    []struct{ ID int64 }
		Deleted []struct{ ID int64 }
		Next    string
	}
	after := func(cursor string) changes {
		t.Helper()
		path := "/subscriptions/changes?limit=1000"
		if cursor != "" {
			path += "&after=" + cursor
		}
		return data[changes](t, d.send(t, "GET", path, "", "Authorization", "Bearer "+d.offered.APIToken))
	}
	cursor := after("").Next
	seen := map[string]bool{}
	const events = 10
	for range 2 * events {
		billed := data[struct {
			ID   int64
			What string
		}](t, d.send(t, "POST", "/playground/subscriptions", `{}`))
		seen[billed.What] = true
		c := after(cursor)
		changed, deleted := len(c.Data) == 1 && c.Data[0].ID == billed.ID, len(c.Deleted) == 1 && c.Deleted[0].ID == billed.ID
		assert.That(t, changed != deleted && deleted == (billed.What == "deleted"), "%+v: the changes are %+v", billed, c)
		cursor = c.Next
	}
	assert.Equal(t, len(seen), events, "seen: %v", seen)
	sara := data[struct{ Data []struct{ ID int64 } }](t, d.send(t, "GET", "/subscriptions?customerEmail=sara@example.com", "", "Authorization", "Bearer "+d.offered.APIToken))
	assert.That(t, len(sara.Data) == 3, "customer 1001 has %d subscriptions, want 3", len(sara.Data))
}

func TestDemo_BackstageListsCartsAtRest(t *testing.T) {
	t.Parallel()
	d := openDemo(t)
	owner := d.offered.Customers[0]
	add := d.send(t, "POST", "/cart/add", `{"product_id":1}`, "Authorization", "Bearer "+owner.JWT)
	assert.Require(t, add.Status == http.StatusOK, "%d %s", add.Status, add.Body)
	a := d.send(t, "GET", "/playground/abandoned?idle=0s&within=1h", "")
	found := parseAtRest(t, a.Body)
	assert.That(t, a.Status == http.StatusOK && found.carts[owner.ID].Value == 4950, "%d %s", a.Status, a.Body)
	assert.Equal(t, parseAtRest(t, d.send(t, "GET", "/playground/abandoned", "").Body).lines, 0, "idle for a day")
	for _, query := range []string{"idle=x", "within=-1s", "idle=2h&within=1h"} {
		a := d.send(t, "GET", "/playground/abandoned?"+query, "")
		assert.That(t, a.Status == http.StatusUnprocessableEntity && strings.Contains(a.Body, `"errors":{"idle":`), "%s: %d %s", query, a.Status, a.Body)
	}
}

func TestDemo_BackstageIsForItsOwnPage(t *testing.T) {
	t.Parallel()
	d := openDemo(t) // its CORS_ORIGINS are all
	own := d.URL
	for _, call := range []struct{ method, path, body string }{
		{"POST", "/playground/products/1", `{}`},
		{"PATCH", "/playground/products/" + d.copyProduct(t), `{"stock":5}`},
		{"POST", "/playground/subscriptions", `{}`},
		{"POST", "/playground/agent", `{"method":"GET","path":"/.well-known/ucp"}`},
	} {
		for _, tt := range []struct {
			headers []string
			status  int
		}{
			{nil, 200},
			{[]string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, 200},
			{[]string{"Origin", own}, 200}, // a browser on an insecure origin
			{[]string{"Origin", "https://elsewhere.example.com"}, 404},
			{[]string{"Origin", "https://elsewhere.example.com", "Sec-Fetch-Site", "cross-site"}, 404},
			{[]string{"Origin", own, "Sec-Fetch-Site", "same-site"}, 404},
			{[]string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, 404},
		} {
			a := d.send(t, call.method, call.path, call.body, tt.headers...)
			assert.That(t, a.Status == tt.status && a.Header.Get("Access-Control-Allow-Origin") == "",
				"%s %v: %d, %v; want %d", call.method, tt.headers, a.Status, a.Header, tt.status)
		}
	}
}
