package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/cart"
	"commerce/cart/carthttp"
	"commerce/cart/money"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/telemetry"
	"commerce/cmd/internal/tracing"
	"commerce/subscriptions"
	"commerce/subscriptions/subscriptionshttp"
)

// Parts are the dependencies and settings of the service. The demo, the service and tests
// differ only in these.
type Parts struct {
	Redis        redis.UniversalClient
	Catalog      service.Catalog
	Coupons      service.Coupons
	Stores       auth.StoreDirectory
	JWT          *auth.JWT // nil: every access token is refused
	DefaultStore int64     // 0: the only store, if there is exactly one

	Subscriptions subscriptions.Source // nil: the subscription routes do not exist
	APITokens     *auth.APITokens      // verifies stores' API tokens
	APITokenUsed  func(id int64)       // called for each accepted token; nil: nothing is called

	Stopping func() bool // whether streams must end because the process stops; nil: never

	CartTTL    redisstore.TTLs
	CartLimits cart.Limits
	Strategy   cart.Strategy
	Durable    bool // changes wait for all replicas

	// RedisMinReplicas and RedisSentinels say how many replicas a merge waits for, in
	// addition to those that a master lists (see redisstore.Config). 0 and nil: no others.
	RedisMinReplicas int
	RedisSentinels   func(context.Context, time.Duration) (int, error)

	RedisBatchReads bool // concurrent reads share round trips

	RedisBudget time.Duration    // of each request; 0: the default
	Now         func() time.Time // default time.Now

	BasePath       string
	PublicURL      string // by which clients reach the service; "": the URL of each request
	CORSOrigins    []string
	RateLimit      bool
	Creation       *limit.Quota    // guests' carts that one client may create; nil: no limit
	Failures       *limit.Quota    // invalid access tokens of one client; nil: no limit
	Guesses        service.Guesses // refused coupon codes of one client; zero: no limit
	MaxInFlight    int             // requests of each area at the same time; 0: by CPUs
	TrustedProxies []string
	Log            *slog.Logger
	Metrics        *telemetry.Metrics // nil: no metrics
	Traces         *tracing.Traces    // nil: no traces
	Playground     *pages.Playground  // nil: no page
	Reference      bool               // whether /docs shows the OpenAPI document in a browser
}

// Assemble returns the public handler of the service.
func Assemble(p Parts) (http.Handler, error) {
	carts := service.New(service.Config{
		Redis: redisstore.New(redisstore.Config{
			Client: p.Redis, TTL: p.CartTTL, Durable: p.Durable,
			MinReplicas: p.RedisMinReplicas, BatchReads: p.RedisBatchReads, Sentinels: p.RedisSentinels, Now: p.Now,
		}),
		Catalog:  p.Catalog,
		Coupons:  p.Coupons,
		Guesses:  p.Guesses,
		Creation: p.Creation,
		Limits:   p.CartLimits,
		Strategy: p.Strategy,
		Budget:   p.RedisBudget,
		Now:      p.Now,
		Log:      p.Log,
		Events:   p.Metrics.CartEvents(),
	})
	origins, err := newOrigins(p.PublicURL, p.BasePath, p.TrustedProxies)
	if err != nil {
		return nil, err
	}
	callers := auth.NewCartCallers(auth.Config{
		Stores: p.Stores, Tokens: p.JWT, DefaultStore: p.DefaultStore, Failures: p.Failures,
	})
	prices := money.NewFormatter()
	areas := []wire.Area{carthttp.New(callers, carts, p.BasePath).Area()}
	if p.Subscriptions != nil {
		areas = append(areas, subscriptionshttp.New(subscriptionshttp.Config{
			Source: p.Subscriptions, Tokens: p.APITokens, Used: p.APITokenUsed,
			Origin: origins.of, Stopping: p.Stopping, Now: p.Now,
		}).Area())
	}
	handler, err := NewHandler(Config{
		Areas:          areas,
		Prices:         prices,
		Now:            p.Now,
		BasePath:       p.BasePath,
		CORSOrigins:    p.CORSOrigins,
		RateLimit:      p.RateLimit,
		MaxInFlight:    p.MaxInFlight,
		TrustedProxies: p.TrustedProxies,
		Log:            p.Log,
		Metrics:        p.Metrics,
		Traces:         p.Traces,
		Playground:     p.Playground,
		Reference:      p.Reference,
		Language:       callers.Language,
	})
	if err != nil {
		return nil, err
	}
	return origins.warn(handler, p.Log), nil
}
