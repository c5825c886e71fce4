package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"commerce/cmd/internal/server"
)

// wantProtected checks the headers that every response has, except the playground's pages.
func wantProtected(t *testing.T, what string, h http.Header) {
	t.Helper()
	if got := h.Values("X-Content-Type-Options"); len(got) != 1 || got[0] != "nosniff" {
		t.Errorf("%s: X-Content-Type-Options is %q", what, got)
	}
	if got := h.Values("Content-Security-Policy"); len(got) != 1 || got[0] != "default-src 'none'" {
		t.Errorf("%s: Content-Security-Policy is %q", what, got)
	}
}

func TestProtect_CoversEveryResponseOfTheAPI(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	bearer := []string{"Authorization", "Bearer " + s.API}
	for _, call := range []struct {
		method, path, body string
		headers            []string
		status             int
	}{
		{"GET", "/cart", "", nil, 200},
		{"HEAD", "/cart", "", nil, 200},
		{"POST", "/cart/add", `{"product_id":1}`, nil, 200},
		{"POST", "/cart/add", `{}`, nil, 422},
		{"GET", "/nothing", "", nil, 404},
		{"PUT", "/cart", "", nil, 405},
		{"GET", "/cart", "", []string{"Authorization", "Bearer x"}, 401},
		{"GET", "/openapi.yaml", "", nil, 200},
		{"GET", "/openapi.json", "", nil, 200},
		{"GET", "/subscriptions", "", bearer, 200},
		{"GET", "/subscriptions/1", "", nil, 401},
		{"GET", "/subscriptions/changes", "", append(bearer, "Accept", "application/x-ndjson"), 200},
	} {
		a := s.guest(t).send(call.method, call.path, call.body, call.headers...)
		assert(t, a.Status == call.status, "%s %s: got %d %s", call.method, call.path, a.Status, a.Raw)
		wantProtected(t, call.method+" "+call.path, a.Header)
	}
}

func TestProtect_CoversTheAdminsJSON(t *testing.T) {
	t.Parallel()
	a := &server.Admin{Started: time.Now(), Dependencies: map[string]*server.Dependency{"it": {Ping: func(context.Context) error { return nil }}}}
	for _, path := range []string{"/healthz", "/readyz", "/version"} {
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		wantProtected(t, path, w.Header())
		got := w.Header().Get("Cache-Control")
		assert(t, w.Code == http.StatusOK && got == "no-store", "%s: %d, Cache-Control is %q", path, w.Code, got)
	}
}

// Subscriptions have customers' names and addresses.
func TestSubscriptions_AreNeverStoredByCaches(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	bearer := []string{"Authorization", "Bearer " + s.API}
	list := s.guest(t).send("GET", "/subscriptions", "", bearer...)
	id := regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(string(list.Raw))[1]
	for path, status := range map[string]int{
		"/subscriptions": 200, "/subscriptions/" + id: 200, "/subscriptions/summary": 200, "/subscriptions/changes": 200,
		"/subscriptions/999999": 404, "/subscriptions?unknown=1": 400,
	} {
		for _, accept := range []string{"application/json", "application/x-ndjson", "text/csv"} {
			a := s.guest(t).send("GET", path, "", append(bearer, "Accept", accept)...)
			vary := strings.Join(a.Header.Values("Vary"), ", ")
			assert(t, a.Status == status && a.Header.Get("Cache-Control") == "no-store" && strings.Contains(vary, "Authorization"), "%s as %s: %d, Cache-Control %q, Vary %q", path, accept, a.Status, a.Header.Get("Cache-Control"), vary)
		}
	}
}
