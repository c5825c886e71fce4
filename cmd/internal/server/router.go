// Package server puts the service's areas into one Gin engine and adds what every
// answer has in common: request ids, logs, errors, limits.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"

	"commerce/auth/locale"
	"commerce/docs"
)

// APIName is the identifier that every answer carries as "api".
const APIName = "merchant-commerce"

// Routes are handlers by method and path, such as "GET /cart".
type Routes = map[string]func(*gin.Context) error

// Config is what the engine needs.
type Config struct {
	Areas          []Routes
	BasePath       string        // before every path; "" for none
	CORSOrigins    []string      // "*" for all; none: no CORS headers
	RateLimit      bool          // off where a gateway does it
	TrustedProxies []string      // whose X-Forwarded-For is believed; none by default
	Deadline       time.Duration // of one request; default 5 s
	Log            *slog.Logger
	Metrics        *Metrics    // nil: none are kept
	Playground     *Playground // nil: no page

	// Language is that of the store that a request is about, "" if there is none. It
	// is for errors that belong to no store. nil: English.
	Language func(*http.Request) locale.Locale
}

// NewHandler builds the public side of the service.
func NewHandler(c Config) (http.Handler, error) {
	if c.Deadline == 0 {
		c.Deadline = 5 * time.Second
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseEscapedPath = true                         // an encoded slash is part of an item's id, not of the path
	engine.RemoteIPHeaders = []string{"X-Forwarded-For"} // Gin would believe X-Real-IP, too
	if err := engine.SetTrustedProxies(c.TrustedProxies); err != nil {
		return nil, err
	}
	problems := problems{log: c.Log, storeLanguage: c.Language}
	engine.Use(requestID, observe(c.Log, c.Metrics), problems.recover, crossOrigin(c.CORSOrigins))
	if c.RateLimit {
		limit, err := rateLimit(problems)
		if err != nil {
			return nil, err
		}
		engine.Use(limit)
	}
	engine.Use(deadline(c.Deadline))
	engine.NoRoute(problems.answer(func(*gin.Context) error { return errNotFound }))
	engine.NoMethod(problems.answer(func(*gin.Context) error { return errMethodNotAllowed }))

	playground, err := playgroundRoutes(c.Playground, c.BasePath)
	if err != nil {
		return nil, err
	}
	base := engine.Group(c.BasePath)
	for _, area := range append(c.Areas, playground, Routes{"GET /openapi.yaml": openAPI}) {
		for pattern, handle := range area {
			method, path, _ := strings.Cut(pattern, " ")
			base.Handle(method, path, problems.answer(handle))
			if method == http.MethodGet {
				base.Handle(http.MethodHead, path, problems.answer(handle))
			}
		}
	}
	compressed, err := compress(engine)
	if err != nil {
		return nil, err
	}
	return headAsGet(compressed), nil
}

func openAPI(c *gin.Context) error {
	c.Header("Cache-Control", "public, max-age=300")
	c.Data(http.StatusOK, "application/yaml; charset=utf-8", docs.OpenAPI)
	return nil
}

// deadline bounds every request, so that none ever hangs.
func deadline(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), d)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// compress shrinks answers worth it, for clients that ask.
func compress(h http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, err
	}
	return wrap(h), nil
}

// askedAs is the context's key for the method that a request came with.
type askedAs struct{}

// headAsGet makes every HEAD a GET, so that its headers are the same, compression
// included. net/http leaves out the body.
func headAsGet(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			r = r.WithContext(context.WithValue(r.Context(), askedAs{}, r.Method))
			r.Method = http.MethodGet
		}
		h.ServeHTTP(w, r)
	})
}

// methodOf returns the method that a request came with.
func methodOf(r *http.Request) string {
	if method, ok := r.Context().Value(askedAs{}).(string); ok {
		return method
	}
	return r.Method
}

// crossOrigin lets browsers of the listed origins in. One that is not listed is
// served without CORS headers, its preflights too, and never refused: what its
// scripts may read is for the browser to decide.
func crossOrigin(origins []string) gin.HandlerFunc {
	listed := make([]string, len(origins))
	for i, origin := range origins {
		listed[i] = strings.ToLower(origin) // as browsers write them
	}
	config := cors.Config{
		AllowMethods: []string{"GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"},
		AllowHeaders: []string{
			"Accept", "Accept-Language", "Authorization", "Content-Type", "Idempotency-Key", "If-Match",
			"If-None-Match", "X-Cart-Token", "X-Client-Auth", "X-Public-Key", "X-Request-Id", "X-Signature",
			"X-Signature-Version", "X-Timestamp",
		},
		ExposeHeaders: []string{
			"Durability", "ETag", "Idempotency-Replayed", "RateLimit-Limit", "RateLimit-Remaining",
			"RateLimit-Reset", "Retry-After", "X-Cart-Token", "X-Request-Id",
		},
		MaxAge: 2 * time.Hour,
	}
	all := slices.Contains(listed, "*")
	if all {
		config.AllowAllOrigins = true
	} else {
		config.AllowOriginFunc = func(origin string) bool { return slices.Contains(listed, origin) }
	}
	letIn := cors.New(config)
	return func(c *gin.Context) {
		switch {
		case all || slices.Contains(listed, c.GetHeader("Origin")):
			letIn(c)
		case c.Request.Method == http.MethodOptions && c.GetHeader("Access-Control-Request-Method") != "":
			c.AbortWithStatus(http.StatusNoContent)
		}
	}
}
