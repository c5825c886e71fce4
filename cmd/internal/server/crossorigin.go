package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"golang.org/x/net/http/httpguts"
)

// crossOrigins are the origins whose scripts may call the API and read its responses (CORS).
// Requests from other origins, preflights included, are served without CORS headers and never
// refused: the browser decides what scripts may read.
type crossOrigins struct {
	all    bool
	listed []string
}

func newCrossOrigins(origins []string) crossOrigins {
	listed := make([]string, len(origins))
	for i, origin := range origins {
		listed[i] = strings.ToLower(origin) // as browsers send them
	}
	return crossOrigins{slices.Contains(listed, "*"), listed}
}

func (o crossOrigins) allow(origin string) bool { return o.all || slices.Contains(o.listed, origin) }

// exposedHeaders are the headers of responses that scripts may read, beside those that they always may.
const exposedHeaders = "Durability, ETag, Idempotency-Replayed, RateLimit-Limit, RateLimit-Remaining, " +
	"RateLimit-Reset, Retry-After, X-Cart-Token, X-Request-Id"

// mark sets the headers of the response to a request that is not a preflight.
func (o crossOrigins) mark(h http.Header, r *http.Request) {
	if len(o.listed) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	if o.markOrigin(h, r) {
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
	}
}

// markOrigin names the origin of the request, if it is allowed.
func (o crossOrigins) markOrigin(h http.Header, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || !o.allow(origin) {
		return false
	}
	if o.all {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	return true
}

func (o crossOrigins) handle(c *gin.Context) {
	h, r := c.Writer.Header(), c.Request
	if !isPreflight(r) {
		o.mark(h, r)
		return
	}
	h.Set("Vary", "Origin, Access-Control-Request-Headers")
	if o.markOrigin(h, r) {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
		if names := requestedHeaders(r); names != "" {
			h.Set("Access-Control-Allow-Headers", names)
		}
		h.Set("Access-Control-Max-Age", "7200")
	}
	c.AbortWithStatus(http.StatusNoContent)
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// The most that a preflight may ask for.
const (
	maxRequestedHeaders = 64
	maxRequestedBytes   = 4 << 10
)

// requestedHeaders returns the headers that a preflight asks for; "" if they are too many, or if one is
// no header's name. A list of allowed names would break each page whose monitoring adds its own, and
// would protect nothing: browsers attach no credentials to these requests.
func requestedHeaders(r *http.Request) string {
	asked := strings.Join(r.Header.Values("Access-Control-Request-Headers"), ",")
	if len(asked) > maxRequestedBytes || strings.Count(asked, ",") >= maxRequestedHeaders {
		return ""
	}
	names := strings.Split(asked, ",")
	for i, name := range names {
		if names[i] = strings.Trim(name, " \t"); !httpguts.ValidHeaderFieldName(names[i]) {
			return ""
		}
	}
	return strings.Join(names, ", ")
}
