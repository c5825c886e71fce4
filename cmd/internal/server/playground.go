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

	"commerce/docs"
)

// Playground is the page at the base path that tries the API in a browser, and
// what the page is given to start with.
//
// Whoever reaches the address reads what is given: it is for the demo, whose data
// is nobody's. Without it the page asks for tokens.
type Playground struct {
	CustomerJWT string `json:"customer_jwt,omitempty"` // of the sample customer 1001
	APIToken    string `json:"api_token,omitempty"`    // of the sample store
}

// pagePolicy lets the page load and call its own origin alone, and nobody frame it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// contentTypes are those of every file that the page is made of. The system's own
// table is not asked: with nosniff a wrong answer is a page that does not load.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// playgroundRoutes serves the page at "/", its files below "/playground" and what
// the page is given at "/playground/demo.json"; nothing at all for nil.
func playgroundRoutes(p *Playground, basePath string) (Routes, error) {
	if p == nil {
		return nil, nil
	}
	routes := Routes{}
	err := fs.WalkDir(docs.Playground, "playground", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		serve, err := pageFile(name)
		if name == "playground/index.html" {
			name = ""
		}
		routes["GET /"+name] = serve
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	if basePath != "" { // the page's addresses are relative to one that ends in "/"
		routes["GET "] = func(c *gin.Context) error {
			c.Redirect(http.StatusPermanentRedirect, basePath+"/")
			return nil
		}
	}
	if *p != (Playground{}) {
		routes["GET /playground/demo.json"] = p.lend
	}
	return routes, nil
}

// pageFile serves one embedded file. It has a tag but no age, so that a browser
// asks each time, and a new build is never mixed with an old one.
func pageFile(name string) (func(*gin.Context) error, error) {
	content, err := docs.Playground.ReadFile(name)
	if err != nil {
		return nil, err
	}
	contentType, known := contentTypes[path.Ext(name)]
	if !known {
		return nil, fmt.Errorf("%s: no content type for it", name)
	}
	sum := sha256.Sum256(content)
	etag := `"` + hex.EncodeToString(sum[:12]) + `"`
	return func(c *gin.Context) error {
		c.Header("Content-Type", contentType)
		c.Header("ETag", etag)
		c.Header("Cache-Control", "no-cache")
		pageHeaders(c)
		http.ServeContent(c.Writer, c.Request, name, time.Time{}, bytes.NewReader(content))
		return nil
	}, nil
}

// lend hands the page its tokens, and no page of another origin: whatever
// CORS_ORIGINS lets in, this is not of the API.
func (p *Playground) lend(c *gin.Context) error {
	c.Writer.Header().Del("Access-Control-Allow-Origin")
	c.Header("Cache-Control", "no-store")
	pageHeaders(c)
	c.JSON(http.StatusOK, p)
	return nil
}

func pageHeaders(c *gin.Context) {
	c.Header("Content-Security-Policy", pagePolicy)
	c.Header("Cross-Origin-Resource-Policy", "same-origin")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("X-Content-Type-Options", "nosniff")
}
