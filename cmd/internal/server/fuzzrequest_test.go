package server_test

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"commerce/cmd/internal/server"
)

// FuzzRequest makes any call with any path segment, query, headers and body. Each line of headers
// is one header, whose first byte chooses the name. Without an Authorization header, the caller
// is a guest, or the store's program for subscriptions.
func FuzzRequest(f *testing.F) {
	seedRequests(f)
	s := openFuzzed(f, func(p *server.Parts) { p.TrustedProxies = []string{"127.0.0.1"} })
	customer := s.token(f, "1001")
	f.Fuzz(func(t *testing.T, route byte, head bool, segment, query string, headers, body []byte) {
		s.begin(t)
		c := s.guest(t)
		tag := c.add(`{"product_id":1}`).Header.Get("ETag")
		call := fuzzedCalls()[int(route)%len(fuzzedCalls())]
		path := strings.NewReplacer("{item_id}", url.PathEscape(segment), "{id}", url.PathEscape(segment)).Replace(call.path)
		if _, err := url.Parse("/?" + query); err == nil && query != "" && !strings.ContainsAny(query, "# \t\r\n") {
			path += "?" + query
		}
		if head && call.method == http.MethodGet {
			call.method = http.MethodHead
		}
		given := readHeaders(headers, strings.NewReplacer("{customer}", customer, "{store}", s.API, "{key}", s.Key, "{token}", c.Token, "{tag}", tag))
		asGuest := !slices.Contains(given, "Authorization")
		if strings.HasPrefix(call.path, "/subscriptions") && asGuest {
			given = append(given, "Authorization", "Bearer "+s.API)
		}
		a := s.with(t, c).fuzzed(call.method, path, body, given...)
		s.wantOwnStore(t, given, call.path, a)
		after := c.cart()
		after.sound(t)
		read := call.method == http.MethodGet || call.method == http.MethodHead
		require(t, (!read || !asGuest || after.Version == 1 && after.lines() == "1×1") && after.Version <= 2, "%s %s: %d %s, and the cart holds %q at version %d", call.method, path, a.Status, a.Body.Code, after.lines(), after.Version)
	})
}

// seedRequests adds each call with usual and unusual headers.
func seedRequests(f *testing.F) {
	line := func(name, value string) string {
		return string(rune('A'+slices.Index(fuzzedHeaders(), name))) + value + "\n"
	}
	for i, call := range fuzzedCalls() {
		f.Add(byte(i), false, "1", "", []byte(nil), []byte(call.body))
		f.Add(byte(i), true, "5001", "page=1", []byte(line("Accept-Language", "ar;q=0.5, *;q=0.1")+line("X-Public-Key", "{key}")), []byte("{"))
		f.Add(byte(i), false, "a/b", "customerEmail=%00@x", []byte(line("Authorization", "Bearer {customer}")+line("X-Forwarded-For", "::1, x")), []byte(call.body))
	}
	for n, headers := range []string{
		line("X-Public-Key", "pk_demo") + line("Content-Type", "text/plain"),
		line("X-Public-Key", "\xff") + line("Accept-Language", ";;q=,") + line("Content-Type", "application/json; charset=latin1"),
		line("Content-Encoding", "gzip") + line("Accept-Encoding", "gzip;q=1"),
		line("Origin", "https://shop.example.com") + line("If-None-Match", "{tag}") + line("If-Match", "{tag}"),
		line("Idempotency-Key", "k") + line("Idempotency-Key", "k") + line("X-Timestamp", "1"),
		line("Authorization", "Bearer {store}") + line("Authorization", "Basic eDp5") + line("X-Cart-Token", "{token}"),
		line("X-Forwarded-Host", "a:80") + line("X-Forwarded-Proto", "https") + line("X-Request-Id", "\xff"),
		line("X-Client-Auth", "a") + line("X-Signature", "b") + line("X-Signature-Version", "2") + line("Accept", "text/csv;q=0"),
	} {
		for i := n % 3; i < len(fuzzedCalls()); i += 3 { // each seed takes time
			f.Add(byte(i), false, "1", "", []byte(headers), []byte(fuzzedCalls()[i].body))
		}
	}
}

// readHeaders returns the headers in lines, in the form that send takes. It leaves out values
// that no HTTP client can send.
func readHeaders(lines []byte, known *strings.Replacer) (headers []string) {
	for line := range bytes.SplitSeq(lines, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		name := fuzzedHeaders()[int(line[0]-'A')%len(fuzzedHeaders())]
		if value := known.Replace(string(line[1:])); httpguts.ValidHeaderFieldValue(value) {
			headers = append(headers, name, value)
		}
	}
	return headers
}

// wantOwnStore fails if a cart was shown although X-Public-Key names another store.
func (s *shop) wantOwnStore(t *testing.T, headers []string, path string, a answer) {
	t.Helper()
	for i := 0; i < len(headers); i += 2 {
		key := strings.TrimSpace(headers[i+1])
		require(t, headers[i] != "X-Public-Key" || a.Status != http.StatusOK || !strings.HasPrefix(path, "/cart") || key == s.Key || key == "", "%s: store %q is not this one", path, key)
	}
}
