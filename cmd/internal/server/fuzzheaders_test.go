package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// FuzzCredentials fuzzes the caller's credentials. Only a usable token gives access to a guest's
// cart. Only an issued token gives access to a customer's cart or a store's subscriptions.
func FuzzCredentials(f *testing.F) {
	s := openFuzzed(f)
	good := "Bearer " + s.token(f, "1001")
	head, rest, _ := strings.Cut(good, ".")
	for _, token := range []string{
		"", "short", strings.Repeat("a", 21), strings.Repeat("a", 22), strings.Repeat("Z9_-", 32), strings.Repeat("a", 129),
		"{1:c:1001}aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaa%0d%0a", "aaaaaaaaaaaaaaaaaaaaaa aaaa", "ééééééééééé", "*1\r\n$8\r\nFLUSHALL",
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
		if sent := strings.TrimSpace(authorization); sent == good || sent == "Bearer "+s.API {
			t.Skip("a good token")
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
	a := c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), "X-Cart-Token", token)
	sent := strings.Trim(token, " \t") // as net/http does
	require(t, a.Status == http.StatusOK && usableToken.MatchString(sent) == (c.Token == sent) && usableToken.MatchString(c.Token), "%d with the token %q", a.Status, c.Token)
	got := a.Header.Get("X-Cart-Token")
	require(t, (got == "") == (c.Token == sent), "issued %q", got)
	for _, held := range s.keys(t) {
		require(t, guestsKey.MatchString(held), "Redis holds %q", held)
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
			require(t, a.Status == http.StatusOK && a.Body.Data.CartToken != nil, "%q, which has other credentials: %d %s", authorization, a.Status, a.Raw)
			c = s.guest(t)
			continue
		}
		require(t, a.Status == http.StatusUnauthorized && a.Header.Get("WWW-Authenticate") == "Bearer" && c.Token == "", "%s with %q: %d %s", path, authorization, a.Status, a.Raw)
	}
}

func FuzzConditionHeaders(f *testing.F) {
	for _, tag := range []string{`"a.1-b"`, `W/"a.1-b"`, "*", `"a" , "b"`, `"`, ",", "", `"a b"`, `""`, ` . `, `".1-"`, "W/", `"\"`} {
		f.Add(tag, tag, "key", "1763632800", "id")
	}
	f.Add("*", "*", "", "", "")
	f.Add("*", "*", strings.Repeat("k", 256), "\xff", strings.Repeat("x", 65))
	s := openFuzzed(f)
	f.Fuzz(func(t *testing.T, match, noneMatch, key, stamp, id string) {
		s.begin(t)
		c := s.guest(t)
		c.add(`{"product_id":1}`)
		headers := []string{"If-Match", match, "Idempotency-Key", key, "X-Timestamp", stamp, "X-Request-Id", id}
		a := c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), headers...)
		read := c.fuzzed("GET", "/cart", nil, "If-None-Match", noneMatch, "Accept-Language", match)
		require(t, read.Status != http.StatusNotModified || strings.TrimSpace(noneMatch) == "*", "%q is no tag of this cart", noneMatch)
		want := int64(1)
		if a.Status == http.StatusOK {
			want = 2
		}
		got := c.cart()
		require(t, got.Count == want, "%d %s, and the cart holds %q", a.Status, a.Body.Code, got.lines())
		require(t, a.Status != http.StatusOK || strings.Trim(match, ", \t") == "*", "If-Match %q is not of this cart", match)
		s.pass(t, 2*time.Second)
		require(t, a.Status != http.StatusOK || key == "" || c.fuzzed("POST", "/cart/add", []byte(`{"product_id":1}`), headers...).replayed(t), "a repeat was applied")
	})
}
