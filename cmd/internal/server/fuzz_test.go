package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Each target calls the whole service, with the embedded Redis. Every response must match
// the OpenAPI document and must not be a 5xx, and a refused change must change nothing.

// fuzzed makes one call, which must not get a 5xx. It skips calls that no HTTP client can
// make.
func (c *shopper) fuzzed(method, path string, body []byte, headers ...string) answer {
	c.t.Helper()
	for i := 1; i < len(headers); i += 2 {
		if !httpguts.ValidHeaderFieldValue(headers[i]) {
			c.t.(*testing.T).Skip("no header's value")
		}
	}
	a := c.send(method, path, string(body), headers...)
	if a.Status >= http.StatusInternalServerError {
		c.t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Raw)
	}
	if a.Status != http.StatusOK && a.Status != http.StatusNotModified && (a.Body.Code == "" || a.Body.Message == "") {
		c.t.Fatalf("%s %s: %d says nothing: %s", method, path, a.Status, a.Raw)
	}
	return a
}

func FuzzAddBody(f *testing.F) {
	for _, bad := range unreadable() {
		if len(bad.body) < 2_000 {
			f.Add([]byte(bad.body))
		}
	}
	for _, body := range []string{
		`{"product_id":1}`, `{"product_id":1.0,"qty":2e0}`, `{"product_id":2,"quantity":3,"notice":"é\u0000"}`,
		`{"product_id":4,"subscription_plan":41}`, `{"product_id":4,"subscription_plan":{"id":42}}`,
		`{"product_id":5,"fields":{"Account email":"x","1":"us"}}`, `{"product_id":5,"fields":{"0":"","Region":null}}`,
		`{"product_id":7,"qty":2}`, `{"product_id":1,"qty":1e400}`, `{"product_id":-1,"qty":-0.0}`,
	} {
		f.Add([]byte(body))
	}
	s := openShop(f, embeddedRedis(f))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := s.guest(t)
		c.cart()
		a := c.fuzzed("POST", "/cart/add", body, "Content-Type", "application/json")
		after := c.cart()
		if a.Status != http.StatusOK {
			if after.Version != 0 || len(after.Items) != 0 {
				t.Fatalf("%d %s, and the cart holds %q", a.Status, a.Body.Code, after.lines())
			}
			return
		}
		if after.Version != 1 || len(after.Items) != 1 || after.Count < 1 || after.Count > 999 {
			t.Fatalf("the cart holds %q at version %d", after.lines(), after.Version)
		}
		var asked struct {
			Product  json.Number `json:"product_id"`
			Qty      *float64    `json:"qty"`
			Quantity *float64    `json:"quantity"`
		}
		d := json.NewDecoder(bytes.NewReader(body))
		if err := d.Decode(&asked); err != nil {
			t.Fatalf("accepted what another JSON parser refuses: %v", err)
		}
		want := 1.0
		for _, q := range []*float64{asked.Quantity, asked.Qty} {
			if q != nil {
				want = *q
			}
		}
		if float64(after.Count) != want {
			t.Fatalf("%d in the cart, want %v", after.Count, want)
		}
	})
}

// Any body may edit a line, next to one that it may become. A success changes the
// version at most once and the quantity only if the body has one; a repeat changes nothing.
func FuzzPatchBody(f *testing.F) {
	for _, body := range []string{
		`{"quantity":3}`, `{"qty":0}`, `{"quantity":1,"qty":1.0}`, `{"quantity":-1}`, `{"quantity":1e-400}`, `[]`, ``,
		`{"fields":{"Account email":"b@example.com"}}`, `{"fields":{"0":"b@example.com","1":null}}`, `{"fields":{"Region":"us"},"notice":"n"}`,
		`{"fields":{"Account email":null}}`, `{"fields":{}}`, `{"fields":null}`, `{"notice":null}`, `{"notice":"\u200b"}`,
		`{"subscription_plan":41,"quantity":2}`, `{"subscription_plan":{"id":null}}`, `{"product_id":5,"qty":998}`, `{"product_id":1,"qty":2}`,
	} {
		f.Add([]byte(body))
	}
	s := openShop(f, embeddedRedis(f))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := s.guest(t)
		own := *c.add(`{"product_id":5,"qty":5,"fields":{"0":"a@example.com"}}`).Body.Data.ItemID
		c.add(`{"product_id":5,"qty":3,"fields":{"0":"b@example.com"}}`)
		before := c.cart()
		a := c.fuzzed("PATCH", "/cart/items/"+own, body, "Content-Type", "application/json", "Idempotency-Key", "k")
		after := c.cart()
		if a.Status != http.StatusOK {
			if after.lines() != before.lines() || after.Version != before.Version {
				t.Fatalf("%d %s, and the cart holds %q at version %d", a.Status, a.Body.Code, after.lines(), after.Version)
			}
			return
		}
		if after.Count < 3 || after.Count > 3+999 || after.Version > before.Version+1 || len(after.Items) == 0 || len(after.Items) > 2 {
			t.Fatalf("the cart holds %q at version %d", after.lines(), after.Version)
		}
		var asked struct{ Qty, Quantity *float64 }
		if err := json.Unmarshal(body, &asked); err == nil && asked.Qty == nil && asked.Quantity == nil && after.Count != before.Count {
			t.Fatalf("%q became %q", before.lines(), after.lines())
		}
		made := a.Body.Data.ItemID
		if removed := after.Count == 3; (made == nil) != removed {
			t.Fatalf("item_id %v, and the cart holds %q", made, after.lines())
		}
		repeat := c.fuzzed("PATCH", "/cart/items/"+own, body, "Content-Type", "application/json", "Idempotency-Key", "k")
		if again := repeat.Body.Data; again.Version != after.Version || (again.ItemID == nil) != (made == nil) || made != nil && *again.ItemID != *made {
			t.Fatalf("a repeat: version %d, item_id %v, want %v", again.Version, again.ItemID, made)
		}
	})
}

func FuzzCartTokenHeader(f *testing.F) {
	for _, token := range []string{
		"", "short", strings.Repeat("a", 21), strings.Repeat("a", 22), strings.Repeat("Z9_-", 32), strings.Repeat("a", 129),
		"{1:c:1001}aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaa%0d%0a", "aaaaaaaaaaaaaaaaaaaaaa aaaa", "ééééééééééé", "*1\r\n$8\r\nFLUSHALL",
	} {
		f.Add(token)
	}
	s := openShop(f, embeddedRedis(f))
	usable := regexp.MustCompile(`^[A-Za-z0-9_-]{22,128}$`)
	key := regexp.MustCompile(`^cart:\{[0-9]+:g:[A-Za-z0-9_-]{22}\}$`)
	f.Fuzz(func(t *testing.T, token string) {
		c := s.guest(t)
		a := c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), "X-Cart-Token", token)
		sent := strings.Trim(token, " \t") // as HTTP does
		if a.Status != http.StatusOK || usable.MatchString(sent) != (c.Token == sent) || !usable.MatchString(c.Token) {
			t.Fatalf("%d with the token %q", a.Status, c.Token)
		}
		if got := a.Header.Get("X-Cart-Token"); (got == "") != (c.Token == sent) {
			t.Fatalf("issued %q", got)
		}
		for _, held := range s.keys(t) {
			if !key.MatchString(held) {
				t.Fatalf("Redis holds %q", held)
			}
		}
		c.ok("DELETE", "/cart/clear", "")
		s.forget(t)
	})
}

// forget deletes this shop's keys in Redis, so that long runs do not fill memory.
func (s *shop) forget(t testing.TB) {
	t.Helper()
	for _, key := range s.keys(t) {
		if err := s.Redis.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzAuthorizationHeader(f *testing.F) {
	s := openShop(f, embeddedRedis(f))
	good := "Bearer " + s.token(f, "1001")
	head, rest, _ := strings.Cut(good, ".")
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Basic eDp5", "Bearer 1|secret", "Bearer ..", head + "." + rest + "=", head + ".e30." + rest,
		"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIiwiZXhwIjo5OTk5OTk5OTk5fQ.", good + ".x", strings.ToLower(good),
	} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if strings.TrimSpace(header) == good {
			t.Skip("a good token")
		}
		c := s.guest(t)
		a := c.fuzzed("GET", "/cart", nil, "Authorization", header)
		if scheme, credentials, _ := strings.Cut(strings.TrimSpace(header), " "); credentials != "" && !strings.EqualFold(scheme, "Bearer") {
			if a.Status != http.StatusOK || a.Body.Data.CartToken == nil {
				t.Fatalf("%q, which has other credentials: %d %s", header, a.Status, a.Raw)
			}
			return
		}
		if a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") != "Bearer" || c.Token != "" {
			t.Fatalf("%q: %d %s", header, a.Status, a.Raw)
		}
	})
}

func FuzzItemID(f *testing.F) {
	for _, id := range []string{"1", "v", "i", "m", "r", "1:n", "1:f", "1.p1", "5.fAAAAAAAAAAAAAAAA", "a/b", "..", "\x00", "1\n", "٣", "+", "%31", ""} {
		f.Add(id)
	}
	s := openShop(f, embeddedRedis(f))
	c := s.guest(f)
	c.add(`{"product_id":1,"notice":"n"}`)
	before := c.cart().Version
	f.Fuzz(func(t *testing.T, id string) {
		c := s.with(t, c)
		path := "/cart/items/" + url.PathEscape(id)
		patched := c.fuzzed("PATCH", path, []byte(`{"quantity":1}`))
		var removed answer
		if id != "1" {
			removed = c.fuzzed("DELETE", path, nil)
		}
		switch {
		case id == "1":
			if patched.Status != http.StatusOK {
				t.Fatalf("its own line: %s", patched.Raw)
			}
		case id == "":
			if patched.Status != http.StatusNotFound || removed.Body.Code != "not_found" {
				t.Fatalf("no line: %s", removed.Raw)
			}
		case patched.Body.Code != "item_not_found" || removed.Status != http.StatusOK:
			t.Fatalf("%q: %s, %s", id, patched.Raw, removed.Raw)
		}
		if got := c.cart(); got.Version != before || got.lines() != "1×1" {
			t.Fatalf("%q: the cart holds %q", id, got.lines())
		}
	})
}

func FuzzConditionHeaders(f *testing.F) {
	for _, tag := range []string{`"a.1-b"`, `W/"a.1-b"`, "*", `"a" , "b"`, `"`, ",", "", `"a b"`, `""`, ` . `, `".1-"`, "W/", `"\"`} {
		f.Add(tag, tag, "key", "1763632800", "id")
	}
	f.Add("*", "*", "", "", "")
	f.Add("*", "*", strings.Repeat("k", 256), "\xff", strings.Repeat("x", 65))
	s := openShop(f, embeddedRedis(f))
	f.Fuzz(func(t *testing.T, match, noneMatch, key, stamp, id string) {
		c := s.guest(t)
		c.add(`{"product_id":1}`)
		headers := []string{"If-Match", match, "Idempotency-Key", key, "X-Timestamp", stamp, "X-Request-Id", id}
		a := c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), headers...)
		read := c.fuzzed("GET", "/cart", nil, "If-None-Match", noneMatch, "Accept-Language", match)
		if read.Status == http.StatusNotModified && strings.TrimSpace(noneMatch) != "*" {
			t.Fatalf("%q is no tag of this cart", noneMatch)
		}
		want := int64(1)
		if a.Status == http.StatusOK {
			want = 2
		}
		if got := c.cart(); got.Count != want {
			t.Fatalf("%d %s, and the cart holds %q", a.Status, a.Body.Code, got.lines())
		}
		if a.Status == http.StatusOK && strings.Trim(match, ", \t") != "*" {
			t.Fatalf("If-Match %q is not of this cart", match)
		}
		s.pass(t, 2*time.Second)
		if a.Status == http.StatusOK && key != "" && !c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), headers...).replayed(t) {
			t.Fatal("a repeat was applied")
		}
	})
}

func FuzzCouponBody(f *testing.F) {
	for _, body := range []string{
		`{"coupon":"TEN"}`, `{"code":"five"}`, `{"coupon":" old "}`, `{"coupon":null,"code":"TEN"}`, `{"coupon":""}`,
		`{"coupon":"TEN","code":"FIVE"}`, `{"coupon":1}`, `{"coupon":"\u0000"}`, `{"coupon":"ß"}`, `[]`, `{`,
	} {
		f.Add([]byte(body))
	}
	s := openShop(f, embeddedRedis(f))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := s.guest(t)
		c.add(`{"product_id":2,"qty":2}`)
		a := c.fuzzed("POST", "/cart/coupon", body, "Content-Type", "application/json")
		after := c.cart()
		if redeemed := after.Coupon != nil; redeemed != (a.Status == http.StatusOK) || after.Count != 2 {
			t.Fatalf("%d, and the cart holds %q with coupon %v", a.Status, after.lines(), after.Coupon)
		}
	})
}

// FuzzCallerHeaders fuzzes the headers for the caller, the store and the language.
func FuzzCallerHeaders(f *testing.F) {
	f.Add("pk_demo", "en", "application/json")
	f.Add("", "ar;q=0.5, *;q=0.1", "text/plain")
	f.Add("\xff", ";;q=,", "application/json; charset=latin1")
	s := openShop(f, embeddedRedis(f))
	f.Fuzz(func(t *testing.T, key, language, media string) {
		c := s.guest(t)
		headers := []string{"X-Public-Key", key, "Accept-Language", language, "Content-Type", media}
		a := c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), headers...)
		if a.Status == http.StatusOK && strings.TrimSpace(key) != s.Key && strings.TrimSpace(key) != "" {
			t.Fatalf("store %q is not this one", key)
		}
		c.fuzzed("GET", "/cart/summary", nil, headers...)
		c.fuzzed("GET", "/cart/validate", nil, headers...)
	})
}

// FuzzSubscriptionsQuery also checks that no link in the list is refused.
func FuzzSubscriptionsQuery(f *testing.F) {
	for _, query := range []string{
		"page=2&per_page=5", "customerEmail=SARA@example.com", "customerPhone=%2B966501234567", "customerCountryCode=966",
		"status=active,canceled&per_page=3", "status=active,", "externalCustomerId=crm-7", "externalCustomerId=%00",
		"page=0", "per_page=101", "cursor=AAAA", "customerMail=x", "page=1&page=2", "%zz", "customerEmail=%00@x", "a;b",
	} {
		f.Add(query, "1")
	}
	f.Add("", "9223372036854775808")
	s := openShop(f, embeddedRedis(f))
	f.Fuzz(func(t *testing.T, query, id string) {
		c := s.guest(t)
		bearer := []string{"Authorization", "Bearer " + s.API}
		a := c.fuzzed("GET", "/subscriptions/"+url.PathEscape(id), nil, bearer...)
		if a.Status != http.StatusOK && a.Status != http.StatusNotFound {
			t.Fatalf("%q: %d", id, a.Status)
		}
		if _, err := url.Parse("/subscriptions?" + query); err != nil || strings.ContainsAny(query, "# \t\r\n") {
			t.Skip("no query that a client can send")
		}
		a = c.fuzzed("GET", "/subscriptions?"+query, nil, bearer...)
		var page struct {
			Data struct {
				Next string `json:"next_page_url"`
				Prev string `json:"prev_page_url"`
			} `json:"data"`
		}
		if a.Status != http.StatusOK || json.Unmarshal(a.Raw, &page) != nil {
			return
		}
		for _, link := range []string{page.Data.Next, page.Data.Prev} {
			if link != "" && c.fuzzed("GET", strings.TrimPrefix(link, s.URL), nil, bearer...).Status != http.StatusOK {
				t.Fatalf("%q gave the link %q, which is refused", query, link)
			}
		}
	})
}
