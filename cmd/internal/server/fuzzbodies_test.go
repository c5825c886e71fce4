package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// quantitiesIn returns the quantities in a body, as another JSON parser reads them. It matches
// member names exactly, unlike that parser when it decodes into a struct.
func quantitiesIn(body []byte) (quantities []float64, err error) {
	var members map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&members); err != nil {
		return nil, err
	}
	for _, name := range []string{"qty", "quantity"} {
		var quantity *float64
		if text, ok := members[name]; ok {
			if err := json.Unmarshal(text, &quantity); err != nil {
				return nil, err
			}
		}
		if quantity != nil {
			quantities = append(quantities, *quantity)
		}
	}
	return quantities, nil
}

// FuzzPatch sends any body to edit a line. The cart has a second line, which the edited line may
// join. A success changes the version at most once, and the quantity only if the body has one. A
// repeat changes nothing. An ID that is not the line's own edits nothing.
func FuzzPatch(f *testing.F) {
	for _, body := range []string{
		`{"quantity":3}`, `{"qty":0}`, `{"quantity":1,"qty":1.0}`, `{"quantity":-1}`, `{"quantity":1e-400}`, `[]`, ``,
		`{"fields":{"Account email":"b@example.com"}}`, `{"fields":{"0":"b@example.com","1":null}}`, `{"fields":{"Region":"us"},"notice":"n"}`,
		`{"fields":{"Account email":null}}`, `{"fields":{}}`, `{"fields":null}`, `{"notice":null}`, `{"notice":"\u200b"}`,
		`{"subscription_plan":41,"quantity":2}`, `{"subscription_plan":{"id":null}}`, `{"product_id":5,"qty":998}`, `{"product_id":1,"qty":2}`,
	} {
		f.Add("1", []byte(body))
	}
	for _, id := range []string{"1", "v", "i", "m", "r", "1:n", "1:f", "1.p1", "5.fAAAAAAAAAAAAAAAA", "a/b", "..", "\x00", "1\n", "٣", "+", "%31", ""} {
		f.Add(id, []byte(`{"quantity":1}`))
	}
	s := openFuzzed(f)
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		s.begin(t)
		s.guest(t).editsOnly("1", id)
		c := s.guest(t)
		own := *c.add(`{"product_id":5,"qty":5,"fields":{"0":"a@example.com"}}`).Body.Data.ItemID
		c.add(`{"product_id":5,"qty":3,"fields":{"0":"b@example.com"}}`)
		before := c.cart()
		a := c.fuzzed("PATCH", "/cart/items/"+own, body, "Content-Type", "application/json", "Idempotency-Key", "k")
		after := c.cart()
		after.sound(t)
		if a.Status != http.StatusOK {
			assert.Require(t, after.lines() == before.lines() && after.Version == before.Version, "%d %s, and the cart holds %q at version %d", a.Status, a.Body.Code, after.lines(), after.Version)
			return
		}
		assert.Require(t, after.Count >= 3 && after.Count <= 3+999 && after.Version <= before.Version+1 && len(after.Items) != 0 && len(after.Items) <= 2, "the cart holds %q at version %d", after.lines(), after.Version)
		asked, err := quantitiesIn(body)
		assert.Require(t, err != nil || len(asked) != 0 || after.Count == before.Count, "%q became %q", before.lines(), after.lines())
		made := a.Body.Data.ItemID
		removed := after.Count == 3
		assert.Require(t, (made == nil) == removed, "item_id %v, and the cart holds %q", made, after.lines())
		repeat := c.fuzzed("PATCH", "/cart/items/"+own, body, "Content-Type", "application/json", "Idempotency-Key", "k")
		again := repeat.Body.Data
		assert.Require(t, again.Version == after.Version && (again.ItemID == nil) == (made == nil) && (made == nil || *again.ItemID == *made), "a repeat: version %d, item_id %v, want %v", again.Version, again.ItemID, made)
	})
}

// editsOnly adds the plain line own, and checks that no other id edits or removes it.
func (c *shopper) editsOnly(own, id string) {
	c.t.Helper()
	c.add(`{"product_id":` + own + `,"notice":"n"}`)
	before := c.cart()
	path := "/cart/items/" + url.PathEscape(id)
	patched := c.fuzzed("PATCH", path, []byte(`{"quantity":1}`))
	var removed answer
	if id != own {
		removed = c.fuzzed("DELETE", path, nil)
	}
	switch {
	case id == own:
		assert.Require(c.t, patched.Status == http.StatusOK, "its own line: %s", patched.Raw)
	case id == "":
		assert.Require(c.t, patched.Status == http.StatusNotFound && removed.Body.Code == "not_found", "no line: %s", removed.Raw)
	case patched.Body.Code != "item_not_found" || removed.Status != http.StatusOK:
		c.t.Fatalf("%q: %s, %s", id, patched.Raw, removed.Raw)
	}
	got := c.cart()
	assert.Require(c.t, got.Version == before.Version && got.lines() == own+"×1", "%q: the cart holds %q", id, got.lines())
}

// FuzzCredentials fuzzes the caller's credentials. Only a usable token gives access to a guest's
// cart. Only an issued token gives access to a customer's cart or a store's subscriptions.
func FuzzCredentials(f *testing.F) {
	s := openFuzzed(f)
	good := "Bearer " + s.token(f, "1001")
	head, rest, _ := strings.Cut(good, ".")
	usable := strings.Repeat("aZ9_-", 5)
	for _, token := range []string{
		"", "short", usable[:21], usable, strings.Repeat("aZ9", 9), strings.Repeat("Z9_-", 32), strings.Repeat("a", 129), strings.Repeat("a", 9<<10),
		"{1:c:1001}aaaaaaaaaaaaaaaa", "cart:{1:c:1001}:replays", "*?[a-z]aaaaaaaaaaaaaaaa", "*1\r\n$8\r\nFLUSHALL", "ééééééééééé",
		usable + "%0d%0a", usable + "%00", usable + " aaaa", usable + "\taaaa", usable + "\xff", usable + "==",
		usable + "," + usable, `"` + usable + `"`,
	} {
		f.Add(token, "")
	}
	for _, header := range []string{
		"Bearer", "Bearer ", "Basic eDp5", "Bearer 1|secret", "Bearer ..", head + "." + rest + "=", head + ".e30." + rest,
		"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIiwiZXhwIjo5OTk5OTk5OTk5fQ.", good + ".x", strings.ToLower(good),
		"Bearer 9223372036854775807|" + strings.Repeat("a", 43), "Bearer 2|" + strings.Repeat("\x00", 43),
	} {
		f.Add("", header)
	}
	f.Fuzz(func(t *testing.T, token, authorization string) {
		s.begin(t)
		s.opensOnlyWithUsableToken(t, token)
		if sent := strings.TrimSpace(authorization); sent == "" || sent == good || sent == "Bearer "+s.API {
			t.Skip("none, or a good token")
		}
		s.refuses(t, authorization)
	})
}

var (
	usableToken = regexp.MustCompile(`^[A-Za-z0-9_-]{22,128}$`)
	guestsKey   = regexp.MustCompile(`^cart:\{[0-9]+:g:[A-Za-z0-9_-]{22}\}$`)
)

// opensOnlyWithUsableToken adds to a cart with any X-Cart-Token.
func (s *shop) opensOnlyWithUsableToken(t *testing.T, token string) {
	t.Helper()
	c := s.guest(t)
	refused := c.fuzzed("PATCH", "/cart/items/1", []byte(`{"quantity":2}`), "X-Cart-Token", token)
	assert.Require(t, refused.Status == http.StatusNotFound && refused.Header.Get("X-Cart-Token") == "", "%d issued a token", refused.Status)
	a := c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), "X-Cart-Token", token)
	sent := strings.Trim(token, " \t") // as net/http does
	distinct := map[rune]bool{}
	for _, r := range sent {
		distinct[r] = true
	}
	usable := usableToken.MatchString(sent) && len(distinct) >= 4
	assert.Require(t, a.Status == http.StatusOK && usable == (c.Token == sent) && usableToken.MatchString(c.Token), "%d with the token %q", a.Status, c.Token)
	got := a.Header.Get("X-Cart-Token")
	assert.Require(t, (got == "") == (c.Token == sent), "issued %q", got)
	for _, held := range s.keys(t) {
		assert.Require(t, guestsKey.MatchString(held), "Redis holds %q", held)
	}
	c.ok("DELETE", "/cart/clear", "")
}

// refuses sends an Authorization header without a valid token, and checks the refusals.
func (s *shop) refuses(t *testing.T, authorization string) {
	t.Helper()
	c := s.guest(t)
	for _, path := range []string{"/cart", "/subscriptions"} {
		a := c.fuzzed("GET", path, nil, "Authorization", authorization)
		scheme, credentials, _ := strings.Cut(strings.TrimSpace(authorization), " ")
		if path == "/cart" && credentials != "" && !strings.EqualFold(scheme, "Bearer") {
			assert.Require(t, a.Status == http.StatusOK && a.Body.Data.CartToken != nil, "%q, which has other credentials: %d %s", authorization, a.Status, a.Raw)
			c = s.guest(t)
			continue
		}
		assert.Require(t, a.Status == http.StatusUnauthorized && a.Header.Get("WWW-Authenticate") == "Bearer" && c.Token == "", "%s with %q: %d %s", path, authorization, a.Status, a.Raw)
	}
}
