// Package server serves the areas of the API with one Gin engine. It adds what all
// responses have in common: envelopes, errors, request IDs, logs and limits.
package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"

	"commerce/auth/locale"
	"commerce/cart/money"
	"commerce/cart/wire"
	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/telemetry"
	"commerce/cmd/internal/tracing"
)

// APIName is the value of "api" in every response.
const APIName = "merchant-commerce"

type Config struct {
	Areas          []wire.Area
	BasePath       string           // prefix of every path; "" for none
	PublicURL      string           // by which clients reach the service; "": the URL of each request
	CORSOrigins    []string         // "*" for all; none: no CORS headers
	RateLimit      bool             // false if a gateway limits rates
	MaxInFlight    int              // requests of each area at the same time; default: 256 for each CPU
	TrustedProxies []string         // addresses or networks whose X-Forwarded-For and traceparent are trusted; default none
	CountryHeader  string           // in which these say the country of a request; "": they do not
	Local          bool             // serve only requests for a loopback host or that of PublicURL
	Deadline       time.Duration    // of one request, except streams; default 5 s
	Stall          time.Duration    // how long the client of a stream may read nothing; default 15 s
	Heartbeat      time.Duration    // after which an idle stream of events sends a comment; default 15 s
	Ending         context.Context  // when streams of events end, because the process stops; nil: never
	Now            func() time.Time // default time.Now
	Log            *slog.Logger
	Metrics        *telemetry.Metrics
	Traces         *tracing.Traces   // nil: no traces
	Playground     *pages.Playground // and the API reference at /docs; nil: neither

	// Language returns the language of a request's store, "" if it has none. It is
	// for errors that come before the store is known. nil: English.
	Language func(*http.Request) locale.Locale
}

func NewHandler(c Config) (http.Handler, error) {
	c.Deadline = cmp.Or(c.Deadline, 5*time.Second)
	c.Stall = cmp.Or(c.Stall, 15*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	if c.Ending == nil {
		c.Ending = context.Background()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseEscapedPath = true                         // an encoded slash is part of an item's ID, not of the path
	engine.RemoteIPHeaders = []string{"X-Forwarded-For"} // Gin's default includes X-Real-IP
	if err := engine.SetTrustedProxies(c.TrustedProxies); err != nil {
		return nil, err
	}
	origins, err := newOrigins(c.PublicURL, c.BasePath, c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	respond := &responder{c, origins, writers{prices: money.NewFormatter()}, newRepeats()}
	switch {
	case len(c.TrustedProxies) > 0:
		engine.Use(cutPorts)
	case c.PublicURL == "":
		engine.Use(warnOfProxy(c.Log))
	}
	engine.Use(respond.observe)
	if c.Local {
		engine.Use(respond.onlyLocal)
	}
	engine.Use(newCrossOrigins(c.CORSOrigins).handle)
	if c.RateLimit {
		engine.Use(rateLimit(respond))
	}
	engine.NoRoute(func(c *gin.Context) { respond.fail(c, wire.Answer{}, errNotFound) })
	engine.NoMethod(func(c *gin.Context) { respond.fail(c, wire.Answer{}, errMethodNotAllowed) })
	route(engine, respond)
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(1400), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, err
	}
	return newFront(compress(engine), respond), nil
}

func route(engine *gin.Engine, r *responder) {
	shown := pages.Areas(pages.Config{
		Playground: r.Playground, BasePath: r.BasePath, NotFound: errNotFound, Protect: protect,
	})
	for _, area := range slices.Concat(r.Areas, shown) {
		for _, route := range area.Routes {
			handle, path := r.adapt(&area, &route), r.BasePath+route.Path
			if route.AtRoot {
				path = route.Path
			}
			engine.Handle(route.Method, path, handle)
			if route.Method == http.MethodGet {
				engine.Handle(http.MethodHead, path, handle)
			}
		}
	}
}
