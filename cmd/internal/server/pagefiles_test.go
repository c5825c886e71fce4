package server_test

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/docs"
)

func withPages(p *server.Parts) { p.Playground = &pages.Playground{} }

func withPlayground(p pages.Playground) func(*server.Parts) {
	return func(parts *server.Parts) { parts.Playground = &p }
}

func under(basePath string) func(*server.Parts) {
	return func(p *server.Parts) { p.BasePath = basePath }
}

// get returns a response without its body, also a redirect. Headers are name, value, …
func get(t *testing.T, address string, headers ...string) *http.Response {
	t.Helper()
	r := assert.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, _ := exchange(t, r)
	return response
}

func policyOf(styles string) string {
	return "default-src 'none'; script-src 'self'; style-src " + styles + "; img-src 'self'; font-src 'self'; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

func TestPageFiles_AreServedUnderTheBasePathAndBoundToTheirOrigin(t *testing.T) {
	s := newShop(t, withPages, under("/shop"))
	type file struct{ policy, contentType string } // "" for any type
	files := map[string]file{}
	for path, contentType := range map[string]string{
		"/docs": "text/html", "/docs/page.css": "text/css", "/docs/page.js": "text/javascript", "/docs/ar.json": "application/json", "/docs/icon.svg": "image/svg+xml",
		"/docs/viewer.js": "text/javascript", "/docs/LICENSE.txt": "text/plain",
	} {
		files[path] = file{policyOf("'self' 'unsafe-inline'"), contentType}
	}
	assert.NoError(t, fs.WalkDir(docs.Playground, "playground", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files["/"+strings.TrimPrefix(name, "playground/index.html")] = file{policy: policyOf("'self'")}
		}
		return err
	}))
	assert.Require(t, len(files) >= 50, "found %d files", len(files))
	for path, want := range files {
		a := get(t, s.URL+path, "Accept-Encoding", "gzip")
		assert.That(t, a.StatusCode == http.StatusOK && a.Header.Get("X-Content-Type-Options") == "nosniff", "%s: %d %v", path, a.StatusCode, a.Header)
		assert.Equal(t, a.Header.Values("Content-Security-Policy"), []string{want.policy}, "%s: policy", path)
		got := a.Header.Get("Content-Type")
		assert.That(t, strings.HasPrefix(got, want.contentType), "%s: type %s, want %s", path, got, want.contentType)
		assert.Equal(t, get(t, s.URL+path, "Accept-Encoding", "gzip", "If-None-Match", a.Header.Get("ETag")).StatusCode, http.StatusNotModified, "%s: status for its own ETag", path)
	}
}

// The service may be behind a proxy that strips a prefix, so no redirect may name a path.
func TestPageFiles_RedirectRelatively(t *testing.T) {
	s := newShop(t, withPages, under("/shop"))
	for path, want := range map[string]string{"": "shop/", "/docs/": "../docs", "/docs/?dark=1": "../docs?dark=1"} {
		a := get(t, s.URL+path)
		assert.That(t, a.StatusCode == http.StatusPermanentRedirect && a.Header.Get("Location") == want && a.Header.Get("Cache-Control") == "public, max-age=300", "%s: %d %v", path, a.StatusCode, a.Header)
	}
}

func TestPlayground_OffersNothingToOtherOriginsAndOnlyInTheDemo(t *testing.T) {
	lent := pages.Playground{Demo: &pages.Demo{CustomerJWT: "a.b.c"}}
	s := newShop(t, withPlayground(lent), func(p *server.Parts) { p.CORSOrigins = []string{"*"} })
	a := get(t, s.URL+"/playground/demo.json", "Origin", "https://elsewhere.example.com")
	assert.That(t, a.StatusCode == http.StatusOK && a.Header.Get("Cache-Control") == "no-store", "%d, Cache-Control %q", a.StatusCode, a.Header.Get("Cache-Control"))
	assert.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), "", "origin whose pages may read it")
	bare := openShop(t, embeddedRedis(t), withPages)
	bare.guest(t).refused(404, "not_found", "GET", "/playground/demo.json", "")
	bare.guest(t).refused(404, "not_found", "PATCH", "/playground/products/1", `{"price":1}`)
	bare.guest(t).refused(404, "not_found", "POST", "/playground/subscriptions", `{}`)
}

// net/http would refuse these conditions without the envelope of errors.
func TestPageFiles_IgnoreRangesAndIfMatch(t *testing.T) {
	s := newShop(t, withPages)
	for _, path := range []string{
		"/docs", "/docs/page.js", "/docs/viewer.js", "/", "/playground/icon.svg", "/openapi.json", "/openapi.yaml", "/storefront.js",
	} {
		for header, value := range map[string]string{"Range": "bytes=900000000-", "If-Match": `"x"`} {
			assert.Equal(t, get(t, s.URL+path, header, value).StatusCode, http.StatusOK, "%s with %s: status", path, header)
		}
	}
}

// A strong tag would be wrong for one of the two, whose bytes differ.
func TestPageFiles_HaveOneWeakTagForCompressedAndPlainContent(t *testing.T) {
	s := newShop(t, withPages)
	for _, path := range []string{"/docs/page.js", "/docs/viewer.js", "/openapi.json", "/openapi.yaml", "/storefront.js"} {
		plain, compressed := get(t, s.URL+path, "Accept-Encoding", "identity"), get(t, s.URL+path, "Accept-Encoding", "gzip")
		assert.That(t, compressed.Header.Get("Content-Encoding") == "gzip", "%s is not compressed", path)
		tag := plain.Header.Get("ETag")
		assert.That(t, strings.HasPrefix(tag, `W/"`) && compressed.Header.Get("ETag") == tag, "%s: tags %s and %s", path, tag, compressed.Header.Get("ETag"))
		assert.Equal(t, get(t, s.URL+path, "If-None-Match", tag, "Accept-Encoding", "gzip").StatusCode, http.StatusNotModified, "%s: status for its own tag", path)
	}
}

func TestReference_SendsItsViewerCompressedWhereAccepted(t *testing.T) {
	s := newShop(t, withPages)
	stored := assert.Must(docs.Reference.ReadFile("reference/viewer.js.gz"))(t)
	r := assert.Must(gzip.NewReader(bytes.NewReader(stored)))(t)
	plain := assert.Must(io.ReadAll(r))(t)
	for accepted, want := range map[string][]byte{
		"gzip": stored, "br, GZIP;q=0.5": stored, "identity": plain, "gzip;q=0": plain, "gzip; q=0.0, br": plain, "br": plain,
	} {
		response, got := exchange(t, s.guest(t).request("GET", "/docs/viewer.js", nil, "Accept-Encoding", accepted))
		assert.That(t, bytes.Equal(got, want) && response.Header.Get("Vary") != "", "%s: %d bytes, want %d, headers %v", accepted, len(got), len(want), response.Header)
	}
}
