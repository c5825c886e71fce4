package server

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/cart"
	"commerce/cart/carthttp"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/subscriptions"
	"commerce/subscriptions/subscriptionshttp"
)

// Parts are the dependencies and settings of the service. The demo, the service and tests
// differ only in these.
type Parts struct {
	Config // except for Areas and Language, which Assemble sets

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

	RedisBatch bool // concurrent reads, and concurrent changes, share round trips

	RedisBudget time.Duration // of each request; 0: the default

	Creation *limit.Quota    // guests' carts that one client may create; nil: no limit
	Failures *limit.Quota    // invalid access tokens of one client; nil: no limit
	Guesses  service.Guesses // refused coupon codes of one client; zero: no limit
}

// Assemble returns the public handler of the service.
func Assemble(p Parts) (http.Handler, error) {
	carts := service.New(service.Config{
		Redis: redisstore.New(redisstore.Config{
			Client: p.Redis, TTL: p.CartTTL, Durable: p.Durable,
			MinReplicas: p.RedisMinReplicas, Batch: p.RedisBatch, Sentinels: p.RedisSentinels, Now: p.Now,
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
	p.Language = callers.Language
	p.Areas = []wire.Area{carthttp.New(callers, carts, p.BasePath, origins.of).Area()}
	if p.Subscriptions != nil {
		p.Areas = append(p.Areas, subscriptionshttp.New(subscriptionshttp.Config{
			Source: p.Subscriptions, Tokens: p.APITokens, Used: p.APITokenUsed,
			Origin: origins.of, Stopping: p.Stopping, Now: p.Now,
		}).Area())
	}
	return NewHandler(p.Config)
}
