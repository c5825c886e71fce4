package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// shopper is one client: it keeps its cart token, like the published client.
type shopper struct {
	t     testing.TB
	shop  *shop
	Token string // of a guest's cart
	JWT   string
	ID    string // of the customer
}

func (s *shop) guest(t testing.TB) *shopper { return &shopper{t: t, shop: s} }

func (s *shop) visitor(t testing.TB) *shopper {
	c := s.guest(t)
	c.cart()
	return c
}

func (s *shop) merchant(t testing.TB) *shopper { return &shopper{t: t, shop: s, JWT: s.API} }

func (s *shop) customer(t testing.TB, id string) *shopper {
	return &shopper{t: t, shop: s, JWT: s.token(t, id), ID: id}
}

func (s *shop) token(t testing.TB, customer string) string {
	t.Helper()
	return assert.Must(s.JWT.Sign(s.ID, customer, time.Hour))(t)
}

type answer struct {
	Call   string // such as "GET /cart"
	Status int
	Header http.Header
	Raw    []byte
	Body   body
}

type body struct {
	Success       bool
	Message, Code string
	Errors        map[string][]string
	Data          cartBody
}

type cartBody struct {
	CartToken        *string `json:"cart_token"`
	Items            []itemBody
	Count, Lines     int64
	Subtotal, Total  float64
	Discount         float64 `json:"discount_amount"`
	TaxAmount        float64 `json:"tax_amount"`
	Coupon           *couponBody
	Coupons          []couponBody
	Discounts        []discountBody
	Offers           []offerBody
	Replaced         []string
	Buyer            buyerBody
	Reason           string // of a refused coupon
	Op               *int   // of a refused list
	Metadata         map[string]any
	ItemIDs          []*string `json:"item_ids"`
	Outcomes         []outcomeBody
	Currency         string
	Version          int64
	ExpiresAt        *string `json:"expires_at"`
	Merge            *mergeBody
	ItemID           *string `json:"item_id"`
	Tax              *taxBody
	PaymentRequired  *bool `json:"payment_required"`
	Errors           []string
	Issues, Warnings []issueBody
}

type outcomeBody struct {
	ItemID        *string `json:"item_id"`
	Code, Message string
	Errors        map[string][]string
	Data          struct{ Reason string }
	Replaced      []string
}

type couponBody struct {
	Code            string
	Value, Discount float64
	Issue           *struct{ Code, Reason, Message string }
}

type discountBody struct {
	ID, Name  string
	Code      *string
	Automatic bool
	Amount    float64
	Lines     []struct {
		ItemID string `json:"item_id"`
		Amount float64
	}
}

type offerBody struct {
	Name     string
	Amount   float64 `json:"missing_amount"`
	Quantity int64   `json:"missing_quantity"`
}

type taxBody struct {
	Rate    *float64
	Amount  float64
	Country *string
	Lines   []taxLineBody
}

type taxLineBody struct{ Rate, Base, Amount float64 }

type itemBody struct {
	ID, Name   string
	ProductID  int64 `json:"product_id"`
	Quantity   int64
	UnitPrice  float64 `json:"unit_price"`
	TotalPrice float64 `json:"total_price"`
	AddedPrice float64 `json:"added_price"`
	Discount   float64
	Notice     *string
	Image      struct {
		FullLink string `json:"full_link"`
	}
	Metadata map[string]string
	Issue    *issueBody
	Fields   []struct{ Name, Value string } `json:"custom_fields"`
}

type issueBody struct {
	ItemID        *string `json:"item_id"`
	Code, Message string
	Requested     int64
	Fix           json.RawMessage
}

type mergeBody struct {
	Lines    int64
	ID       string
	At       time.Time
	Adjusted []adjustedBody
	Code     *string
}

type adjustedBody struct {
	ItemID          string `json:"item_id"`
	Requested, Kept int64
	Code            string
}

// request has headers name, value, …, which replace those that the shopper would send.
func (c *shopper) request(method, path string, body io.Reader, headers ...string) *http.Request {
	c.t.Helper()
	r := assert.Must(http.NewRequestWithContext(context.Background(), method, c.shop.URL+path, body))(c.t)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	c.identify(r.Header)
	seen := map[string]bool{}
	for i := 0; i+1 < len(headers); i += 2 {
		if !seen[headers[i]] {
			r.Header.Del(headers[i])
		}
		seen[headers[i]] = true
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func (c *shopper) identify(h http.Header) {
	h.Set("X-Public-Key", c.shop.Key)
	if c.Token != "" {
		h.Set("X-Cart-Token", c.Token)
	}
	if c.JWT != "" {
		h.Set("Authorization", "Bearer "+c.JWT)
	}
}

// exchange sends a request and returns the response and its body, both as they came.
func exchange(t testing.TB, r *http.Request) (*http.Response, []byte) {
	t.Helper()
	response := assert.Must(http.DefaultTransport.RoundTrip(r))(t)
	defer response.Body.Close()
	return response, assert.Must(io.ReadAll(response.Body))(t)
}

// send makes one call. body is JSON text, "" for none. See request for the headers.
func (c *shopper) send(method, path, payload string, headers ...string) answer {
	c.t.Helper()
	var content io.Reader
	if payload != "" {
		content = strings.NewReader(payload)
	}
	return c.do(c.request(method, path, content, headers...))
}

func (c *shopper) do(r *http.Request) answer {
	c.t.Helper()
	response, raw := exchange(c.t, r)
	assert.NoError(c.t, uncompressed(response, &raw))
	response.Body = io.NopCloser(bytes.NewReader(raw))
	err := conforms(r, response, c.shop.basePath(r))
	assert.Require(c.t, err == nil, "%s %s does not match the OpenAPI document: %v", r.Method, r.URL.Path, err)
	assert.That(c.t, response.Header.Get("X-Request-Id") != "", "%s %s: no X-Request-Id", r.Method, r.URL.Path)
	if regexp.MustCompile(`json|csv|yaml`).MatchString(response.Header.Get("Content-Type")) {
		wantProtected(c.t, r.Method+" "+r.URL.Path, response.Header)
	}
	a := answer{Call: r.Method + " " + r.URL.Path, Status: response.StatusCode, Header: response.Header, Raw: raw}
	if len(raw) > 0 && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		err := json.Unmarshal(raw, &a.Body)
		assert.Require(c.t, err == nil || a.Body.Code != "", "%s %s: %v in %s", r.Method, r.URL.Path, err, raw)
	}
	if token := a.Body.Data.CartToken; token != nil && c.JWT == "" {
		c.Token = *token
	}
	return a
}

func (c *shopper) ok(method, path, payload string, headers ...string) answer {
	c.t.Helper()
	a := c.send(method, path, payload, headers...)
	assert.Require(c.t, a.Status == http.StatusOK, "%s %s %s: %d %s", method, path, payload, a.Status, a.Raw)
	return a
}

func (c *shopper) refused(status int, code, method, path, payload string, headers ...string) answer {
	c.t.Helper()
	a := c.send(method, path, payload, headers...)
	assert.Require(c.t, a.Status == status && a.Body.Code == code, "%s %s %.200s: got %d %s, want %d %s: %s", method, path, payload, a.Status, a.Body.Code, status, code, a.Raw)
	assert.Require(c.t, a.Body.Message != "", "%s %s: no message", method, path)
	return a
}

func (a answer) names(t testing.TB, members ...string) answer {
	t.Helper()
	assert.Equal(t, slices.Sorted(maps.Keys(a.Body.Errors)), members, "%s: members at fault", a.Call)
	return a
}

func (a answer) itemID() string {
	if a.Body.Data.ItemID == nil {
		return ""
	}
	return *a.Body.Data.ItemID
}

func (c *shopper) add(payload string, headers ...string) answer {
	c.t.Helper()
	return c.ok("POST", "/cart/add", payload, headers...)
}

func (c *shopper) cart() cartBody { c.t.Helper(); return c.ok("GET", "/cart", "").Body.Data }

// lines formats a cart as "id×quantity …", in cart order.
func (b cartBody) lines() string {
	parts := make([]string, len(b.Items))
	for i, item := range b.Items {
		n, _ := json.Marshal(item.Quantity)
		parts[i] = item.ID + "×" + string(n)
	}
	return strings.Join(parts, " ")
}

func (c *shopper) wantLines(want string) cartBody {
	c.t.Helper()
	got := c.cart()
	assert.That(c.t, got.lines() == want, "cart holds %q, want %q", got.lines(), want)
	return got
}

// fill adds lines such as "11×2 17.p172×1" one by one.
func (c *shopper) fill(lines string) *shopper {
	c.t.Helper()
	for line := range strings.FieldsSeq(lines) {
		item, quantity, _ := strings.Cut(line, "×")
		product, plan, ok := strings.Cut(item, ".p")
		if ok {
			plan = `,"subscription_plan":` + plan
		}
		c.add(fmt.Sprintf(`{"product_id":%s,"qty":%s%s}`, product, quantity, plan))
	}
	return c
}

// logIn returns the same shopper after a login, who still sends the guest's token.
func (c *shopper) logIn(customer string) *shopper {
	return &shopper{t: c.t, shop: c.shop, Token: c.Token, JWT: c.shop.token(c.t, customer), ID: customer}
}

func (c *shopper) withoutToken() *shopper { return &shopper{t: c.t, shop: c.shop, JWT: c.JWT} }

// with returns the same shopper on another connection, for concurrent use.
func (s *shop) with(t testing.TB, c *shopper) *shopper {
	return &shopper{t: t, shop: s, Token: c.Token, JWT: c.JWT}
}

// at runs n calls concurrently.
func at(n int, call func(int)) {
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			call(i)
		})
	}
	start.Done()
	done.Wait()
}

// sums formats what a cart costs, such as "99 - 9.9 = 89.1 SAR, TEN".
func (b cartBody) sums() string {
	text := fmt.Sprint(b.Subtotal, " - ", b.Discount, " = ", b.Total, " ", b.Currency)
	if b.Coupon != nil {
		text += ", " + b.Coupon.Code
	}
	return text
}

// costs makes calls, each followed by what the cart costs then. Calls are "add 1×2", "set 1 3" for a
// quantity, "remove 1", "redeem TEN", and "return" for the coupon, which no later answer names.
func (c *shopper) costs(calls ...string) {
	c.t.Helper()
	for i := 0; i+1 < len(calls); i += 2 {
		words := append(strings.SplitN(calls[i], " ", 3), "", "")
		var a answer
		switch words[0] {
		case "add":
			a = c.fill(words[1]).ok("GET", "/cart", "")
		case "set":
			a = c.ok("PATCH", "/cart/items/"+words[1], `{"quantity":`+words[2]+`}`)
		case "remove":
			a = c.ok("DELETE", "/cart/items/"+words[1], "")
		case "redeem":
			a = c.redeem(words[1])
		case "return":
			a = c.ok("DELETE", "/cart/coupon", "")
			assert.That(c.t, !strings.Contains(string(a.Raw), "TEN"), "names an earlier coupon: %s", a.Raw)
		}
		assert.Equal(c.t, a.Body.Data.sums(), calls[i+1], "what the cart costs after %q", calls[i])
	}
}

func (c *shopper) redeem(code string, headers ...string) answer {
	c.t.Helper()
	return c.ok("POST", "/cart/coupon", `{"coupon":"`+code+`"}`, headers...)
}

func (c *shopper) tag(headers ...string) string {
	c.t.Helper()
	return c.ok("GET", "/cart", "", headers...).Header.Get("ETag")
}

// decode returns the value of a JSON text. Other members than those of T may be there.
func decode[T any](t testing.TB, text []byte) (value T) {
	t.Helper()
	err := json.Unmarshal(text, &value)
	assert.Require(t, err == nil, "%v in %s", err, text)
	return value
}
