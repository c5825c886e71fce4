package pages

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
	"commerce/docs"
)

// referencePolicy lets the reference use only its own origin, and forbids frames. Its viewer
// sets styles in its script.
const referencePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// referenceRoutes serves the page that shows the OpenAPI document at "/docs", and its files
// below. It returns no routes if the page is off. The samples of requests use
// the demo's tokens, if there are any.
func referenceRoutes(on bool, p *Playground) (routes []wire.Route, err error) {
	if !on {
		return nil, nil
	}
	for path, name := range map[string]string{
		"/docs":             "reference/index.html",
		"/docs/page.css":    "reference/page.css",
		"/docs/page.js":     "reference/page.js",
		"/docs/LICENSE.txt": "reference/LICENSE.txt",
		"/docs/icon.svg":    "playground/icon.svg",
	} {
		files := docs.Reference
		if name == "playground/icon.svg" {
			files = docs.Playground
		}
		serve, err := pageFile(files, name, referencePolicy)
		if err != nil {
			return nil, err
		}
		routes = append(routes, get(path, serve))
	}
	viewer, err := compressedFile("reference/viewer.js.gz", referencePolicy)
	if err != nil {
		return nil, err
	}
	demo := &Demo{}
	if p != nil && p.Demo != nil {
		demo = p.Demo
	}
	return append(routes,
		get("/docs/viewer.js", viewer),
		get("/docs/demo.json", demo.offer),
		get("/docs/", moved("../docs")), // the page's URLs are relative to one without "/"
	), nil
}

// compressedFile serves an embedded script that is stored compressed, as it is to clients
// that accept gzip, and decompressed to others.
func compressedFile(name, policy string) (wire.Handler, error) {
	stored, err := docs.Reference.ReadFile(name)
	if err != nil {
		return nil, err
	}
	tag := etagOf(stored)
	return func(c *gin.Context) (wire.Answer, error) {
		content := stored
		if acceptsGzip(c.Request) {
			c.Header("Content-Encoding", "gzip")
		} else {
			unzipped, err := gzip.NewReader(bytes.NewReader(stored))
			if err != nil {
				return wire.Answer{}, err
			}
			if content, err = io.ReadAll(unzipped); err != nil {
				return wire.Answer{}, err
			}
		}
		c.Header("Cache-Control", "no-cache")
		c.Header("Vary", "Accept-Encoding")
		pageHeaders(c, policy)
		sendFile(c, contentTypes[".js"], tag, content)
		return wire.Answer{}, nil
	}, nil
}

// acceptsGzip reports whether a client accepts compressed content. One that names gzip with
// a quality gets it compressed if the quality is not 0.
func acceptsGzip(r *http.Request) bool {
	for offer := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, quality, _ := strings.Cut(strings.ReplaceAll(offer, " ", ""), ";q=")
		if strings.EqualFold(coding, "gzip") {
			return strings.Trim(quality, "0.") != "" || quality == ""
		}
	}
	return false
}
