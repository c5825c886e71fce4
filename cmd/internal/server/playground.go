package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
	"commerce/docs"
)

// Playground is the page at the base path that tries the API in a browser, and the
// tokens that the page starts with.
//
// Everyone who can open the page can read the tokens. They are for the demo, which has
// only sample data. Without them the page asks for tokens.
type Playground struct {
	CustomerJWT string `json:"customer_jwt,omitempty"` // of the sample customer 1001
	APIToken    string `json:"api_token,omitempty"`    // of the sample store
}

// pagePolicy lets the page use only its own origin, and forbids frames.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// contentTypes are the types of the page's files. The system's table may be wrong, and
// with nosniff a wrong type breaks the page.
var contentTypes = map[string]string{
	".html":  "text/html; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8", // licenses
}

// playgroundRoutes serves the page at "/", its files below "/playground" and its tokens
// at "/playground/demo.json". It returns no routes for nil.
func playgroundRoutes(p *Playground, basePath string) (routes []wire.Route, err error) {
	if p == nil {
		return nil, nil
	}
	get := func(path string, handle wire.Handler) {
		routes = append(routes, wire.Route{Method: http.MethodGet, Path: path, Handle: handle})
	}
	err = fs.WalkDir(docs.Playground, "playground", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		serve, err := pageFile(name)
		if name == "playground/index.html" {
			name = ""
		}
		get("/"+name, serve)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	if basePath != "" { // the page's URLs are relative to one that ends in "/"
		get("", func(c *gin.Context) (wire.Answer, error) {
			c.Redirect(http.StatusPermanentRedirect, basePath+"/")
			return wire.Answer{}, nil
		})
	}
	if *p != (Playground{}) {
		get("/playground/demo.json", p.tokens)
	}
	return routes, nil
}

// pageFile serves one embedded file. Browsers must revalidate it each time, so that they
// never mix the files of two builds.
func pageFile(name string) (wire.Handler, error) {
	content, err := docs.Playground.ReadFile(name)
	if err != nil {
		return nil, err
	}
	contentType, known := contentTypes[path.Ext(name)]
	if !known {
		return nil, fmt.Errorf("%s: unknown content type", name)
	}
	sum := sha256.Sum256(content)
	etag := `"` + hex.EncodeToString(sum[:12]) + `"`
	return func(c *gin.Context) (wire.Answer, error) {
		c.Header("Content-Type", contentType)
		c.Header("ETag", etag)
		c.Header("Cache-Control", "no-cache")
		pageHeaders(c)
		http.ServeContent(c.Writer, c.Request, name, time.Time{}, bytes.NewReader(content))
		return wire.Answer{}, nil
	}, nil
}

// tokens serves the page's tokens, to pages of its own origin only. CORS_ORIGINS is for
// the API.
func (p *Playground) tokens(c *gin.Context) (wire.Answer, error) {
	c.Writer.Header().Del("Access-Control-Allow-Origin")
	c.Header("Cache-Control", "no-store")
	pageHeaders(c)
	c.JSON(http.StatusOK, p)
	return wire.Answer{}, nil
}

func pageHeaders(c *gin.Context) {
	c.Header("Content-Security-Policy", pagePolicy)
	c.Header("Cross-Origin-Resource-Policy", "same-origin")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("X-Content-Type-Options", "nosniff")
}
