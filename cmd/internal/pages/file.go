package pages

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
)

// contentTypes are the types of the pages' files. The system's table may be wrong, and
// with nosniff a wrong type breaks a page.
var contentTypes = map[string]string{
	".html":  "text/html; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8", // licenses
}

// pageFile serves one embedded file of a page, which has this Content-Security-Policy.
// Browsers must revalidate it each time, so that they never mix the files of two builds.
func pageFile(files fs.ReadFileFS, name, policy string) (wire.Handler, error) {
	content, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	contentType, known := contentTypes[path.Ext(name)]
	if !known {
		return nil, fmt.Errorf("%s: unknown content type", name)
	}
	tag := etagOf(content)
	return func(c *gin.Context) (wire.Answer, error) {
		c.Header("Cache-Control", "no-cache")
		pageHeaders(c, policy)
		if path.Dir(name) == "playground/pictures" { // storefronts of other origins show them
			c.Header("Cross-Origin-Resource-Policy", "cross-origin")
		}
		sendFile(c, contentType, tag, content)
		return wire.Answer{}, nil
	}, nil
}

// sendFile sends a whole file, or 304 if the client has it. It ignores ranges and conditions
// that net/http would refuse without the envelope of errors.
func sendFile(c *gin.Context, contentType, tag string, content []byte) {
	for _, name := range []string{"Range", "If-Match"} {
		c.Request.Header.Del(name)
	}
	c.Header("Content-Type", contentType)
	c.Header("ETag", tag)
	http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(content))
}

// moved redirects to a URL that is relative to the request's, and keeps the query. A proxy may
// strip a prefix of paths that the service does not know, so no path of the service is right.
func moved(relative string) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		location := relative
		if query := c.Request.URL.RawQuery; query != "" {
			location += "?" + query
		}
		c.Header("Location", location) // http.Redirect would make it absolute
		c.Header("Cache-Control", "public, max-age=300")
		c.Status(http.StatusPermanentRedirect)
		return wire.Answer{}, nil
	}
}

func pageHeaders(c *gin.Context, policy string) {
	c.Header("Content-Security-Policy", policy)
	c.Header("Cross-Origin-Resource-Policy", "same-origin")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("X-Content-Type-Options", "nosniff")
}

// etagOf returns an entity tag of a file's content. It is weak, because the response can be
// compressed or not.
func etagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}
