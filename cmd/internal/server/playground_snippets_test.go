package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// snippetCall is a call of a shopper with the cart of snippetShopper, as the page sends it.
type snippetCall struct {
	method, path, body string
	headers            map[string]string // in addition to those that every call has
	customer           bool
}

var snippetCalls = map[string]snippetCall{
	"read":     {method: "GET", path: "/cart"},
	"customer": {method: "GET", path: "/cart", customer: true},
	"still":    {method: "GET", path: "/cart", headers: map[string]string{"If-None-Match": "*"}},
	"count":    {method: "GET", path: "/cart/count"},
	"validate": {method: "GET", path: "/cart/validate"},
	"summary":  {method: "GET", path: "/cart/summary"},
	"add":      {method: "POST", path: "/cart/add", body: `{"product_id":1,"qty":3}`, headers: keyed},
	"add with everything": {
		method: "POST", path: "/cart/add", headers: keyed,
		body: `{"product_id":5,"qty":1,"fields":{"Account email":"sara@example.com"},"notice":"It's \"قبل الجمعة\" $HOME \\ ` + "`id`" + `\nplease"}`,
	},
	"add a plan":    {method: "POST", path: "/cart/add", body: `{"product_id":4,"qty":1,"subscription_plan":42}`, headers: keyed},
	"add too many":  {method: "POST", path: "/cart/add", body: `{"product_id":2,"qty":9}`, headers: keyed},
	"quantity":      {method: "PATCH", path: "/cart/items/1", body: `{"quantity":5}`, headers: map[string]string{"Idempotency-Key": "k1", "If-Match": "*"}},
	"note":          {method: "PATCH", path: "/cart/items/1", body: `{"notice":"For Omar"}`, headers: keyed},
	"remove":        {method: "DELETE", path: "/cart/items/1", headers: keyed},
	"coupon":        {method: "POST", path: "/cart/coupon", body: `{"coupon":"TEN"}`, headers: keyed},
	"coupon away":   {method: "DELETE", path: "/cart/coupon", headers: keyed},
	"clear":         {method: "DELETE", path: "/cart/clear", headers: keyed},
	"subscriptions": {method: "GET", path: "/subscriptions?page=2&per_page=5"},
}

var keyed = map[string]string{"Idempotency-Key": "k1", "X-Timestamp": "1763632800"}

// Each snippet runs as its reader would run it, for one of two equal carts. The other cart
// gets the same call directly.
func TestPlaygroundSnippets_MakeTheSameCall(t *testing.T) {
	p, s := openStore(t)
	installed := installPackages(t, "npmtrip")
	customers := 2000
	for name, call := range snippetCalls {
		for kind, run := range map[string]func(testing.TB, string, string) snippetResult{"curl": runCurl, "fetch": runModule, "client": runModule} {
			t.Run(name+" as "+kind, func(t *testing.T) {
				directly, bySnippet := snippetShopper(t, s, call, &customers), snippetShopper(t, s, call, &customers)
				code := p.snippet(kind, s, bySnippet, call)
				got := run(t, installed, code)
				if kind == "client" {
					call.headers = nil // the client sends none of them
				}
				want := snippetWanted(directly.sendAll(call), kind == "client" && strings.Contains(code, "storefront.cart"), name)
				assert.Equal(t, got, want, "the result of\n%s", code)
				a, b := directly.cart(), bySnippet.cart()
				assert.That(t, a.lines() == b.lines() && a.Version == b.Version && a.Total == b.Total, "cart %s, version %d; want %s, version %d\n%s", b.lines(), b.Version, a.lines(), a.Version, code)
			})
		}
	}
}

// snippetShopper returns a new shopper with two lines in the cart.
func snippetShopper(t *testing.T, s *shop, call snippetCall, customers *int) *shopper {
	c := s.guest(t)
	if call.customer {
		*customers++
		c = s.customer(t, strconv.Itoa(*customers))
	}
	return c.fill("1×2 2×1")
}

func (c *shopper) sendAll(call snippetCall) answer {
	headers := []string{"Accept-Language", "en"}
	for name, value := range call.headers {
		headers = append(headers, name, value)
	}
	if strings.HasPrefix(call.path, "/subscriptions") {
		headers = append(headers, "Authorization", "Bearer "+c.shop.API)
	}
	return c.send(call.method, call.path, call.body, headers...)
}

// snippet returns a call as the page shows it for this shopper.
func (p page) snippet(kind string, s *shop, c *shopper, call snippetCall) string {
	p.t.Helper()
	headers := map[string]string{"Accept": "application/json", "Accept-Language": "en", "X-Public-Key": s.Key}
	maps.Copy(headers, call.headers)
	if call.body != "" {
		headers["Content-Type"] = "application/json"
	}
	switch {
	case strings.HasPrefix(call.path, "/subscriptions"):
		headers["Authorization"] = "Bearer " + s.API
	case c.JWT != "":
		headers["Authorization"] = "Bearer " + c.JWT
	default:
		headers["X-Cart-Token"] = c.Token
	}
	request := map[string]any{"method": call.method, "path": call.path, "url": s.URL + call.path, "headers": headers}
	if call.body != "" {
		request["body"] = call.body
	}
	argument := assert.Must(json.Marshal(request))(p.t)
	writer := map[string]string{"curl": "curl.js", "fetch": "fetchcall.js", "client": "clientcall.js"}[kind]
	return evaluate[string](p, fmt.Sprintf(`import("./playground/js/log/%s").then((module) => module.%sOf(%s))`, writer, kind, argument))
}

// snippetResult is what a snippet prints.
type snippetResult struct {
	Status  int // 0 if it prints none
	Body    any // without the members that differ between two carts
	Refused string
}

// snippetWanted is the result for the answer of the same call. The client returns the data
// alone, and only the number of GET /cart/count.
func snippetWanted(a answer, byClient bool, name string) snippetResult {
	var body any
	_ = json.Unmarshal(a.Raw, &body) // 304 has none
	settled(body)
	if !byClient {
		return snippetResult{Status: a.Status, Body: body}
	}
	if a.Status >= 400 {
		return snippetResult{Refused: a.Body.Message}
	}
	data := body.(map[string]any)["data"]
	switch name {
	case "count":
		data = data.(map[string]any)["count"]
	case "clear":
		data = nil
	}
	return snippetResult{Body: data}
}

func runCurl(t testing.TB, _, code string) snippetResult {
	t.Helper()
	printed, err := command(t, "sh", "-c", code).Output()
	assert.Require(t, err == nil, "%v\n%s", err, code)
	head, content, _ := strings.Cut(string(printed), "\r\n\r\n")
	status, _ := strconv.Atoi(strings.Fields(head)[1])
	var body any
	_ = json.Unmarshal([]byte(content), &body)
	settled(body)
	return snippetResult{Status: status, Body: body}
}

// asBrowser makes Node.js look like a browser to the client, and prints values as JSON.
const asBrowser = `data:text/javascript,globalThis.window={document:{},navigator:{}};` +
	`console.log=(...values)=>process.stdout.write(JSON.stringify(values))`

// runModule runs a module in the directory with the installed client.
func runModule(t testing.TB, installed, code string) snippetResult {
	t.Helper()
	file, err := os.CreateTemp(installed, "snippet-*.mjs")
	if err == nil {
		_, err = file.WriteString(code)
	}
	assert.NoError(t, err)
	file.Close()
	node := command(t, "node", "--import", asBrowser, file.Name())
	failure := &strings.Builder{}
	node.Stderr = failure
	printed, err := node.Output()
	if err != nil {
		return snippetResult{Refused: refusalIn(failure.String())}
	}
	var values []any
	_ = json.Unmarshal(printed, &values) // a clear prints nothing
	for _, v := range values {
		settled(v)
	}
	switch len(values) {
	case 0:
		return snippetResult{}
	case 1:
		return snippetResult{Body: values[0]}
	}
	status, _ := values[0].(float64)
	if values[1] == "" {
		values[1] = nil
	}
	return snippetResult{Status: int(status), Body: values[1]}
}

// refusalIn returns the service's sentence in an uncaught error, or the whole error.
func refusalIn(failure string) string {
	_, after, _ := strings.Cut(failure, "message: '")
	message, _, found := strings.Cut(after, "',\n")
	if !found {
		return failure
	}
	return message
}

// settled removes the members that differ between two equal carts, and between two calls.
func settled(body any) {
	members, isObject := body.(map[string]any)
	for name, value := range members {
		if slices.Contains([]string{"timestamp", "request_id", "cart_token", "expires_at"}, name) {
			delete(members, name)
		}
		settled(value)
	}
	if list, isList := body.([]any); isList && !isObject {
		for _, value := range list {
			settled(value)
		}
	}
}
