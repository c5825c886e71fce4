package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
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
	".json":  "application/json", // the profile of the page's agent
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8", // licenses
}

func namesOf(files embed.FS, folder string) (names []string) {
	err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		panic(err) // it is a folder in memory
	}
	return names
}

// pageFile serves one embedded file of a page, which has this Content-Security-Policy.
// Browsers must revalidate it each time, so that they never mix the files of two builds.
// A file that is stored compressed (.gz) is decompressed for clients that do not accept gzip.
// It panics if there is no such file, or if its type is unknown.
func pageFile(files embed.FS, name, policy string) wire.Handler {
	stored, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	plain, compressed := strings.CutSuffix(name, ".gz")
	contentType, known := contentTypes[path.Ext(plain)]
	if !known {
		panic(name + ": unknown content type")
	}
	tag := etagOf(stored)
	return func(c *gin.Context) (answer wire.Answer, err error) {
		content := stored
		if compressed {
			c.Header("Vary", "Accept-Encoding")
			if acceptsGzip(c.Request) {
				c.Header("Content-Encoding", "gzip")
			} else if content, err = unzip(stored); err != nil {
				return answer, err
			}
		}
		c.Header("Cache-Control", "no-cache")
		pageHeaders(c, policy)
		if path.Dir(name) == pictures { // storefronts of other origins show them
			c.Header("Cross-Origin-Resource-Policy", "cross-origin")
		}
		sendFile(c, contentType, tag, content)
		return answer, nil
	}
}

func unzip(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
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

// sendFile sends a whole file, or 304 if the client has it. It ignores ranges and conditions
// that net/http would refuse without the envelope of errors.
func sendFile(c *gin.Context, contentType, tag string, content []byte) {
	c.Request.Header.Del("Range")
	c.Request.Header.Del("If-Match")
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

// etagOf returns a weak tag, because the response can be compressed or not.
func etagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}
