package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/subscriptions"
)

// Parts are what the service is made of. Demo, service and tests differ in these
// alone.
type Parts struct {
	Redis        redis.UniversalClient
	Catalog      cart.Catalog
	Coupons      cart.Coupons
	Stores       auth.StoreDirectory
	JWT          *auth.JWT // nil: no customers
	DefaultStore int64     // 0: the only store, when there is one

	Subscriptions subscriptions.Source // nil: none are served
	APITokens     *auth.APITokens      // of the stores whose they are
	APITokenUsed  func(id int64)       // told of each that is let in; nil: nobody is

	CartTTL    cart.TTLs
	CartLimits cart.Limits
	Strategy   cart.Strategy
	Durable    bool // changes wait for every replica

	// RedisMinReplicas and RedisSentinels tell how many replicas a merge waits for,
	// beyond those that a master lists (see cart.RedisConfig); 0 and nil for nothing.
	RedisMinReplicas int
	RedisSentinels   func(context.Context, time.Duration) (int, error)

	RedisBudget time.Duration    // of each request; 0 for the default
	Now         func() time.Time // nil for time.Now

	BasePath       string
	PublicURL      string // by which clients reach the service; "" for what each request says
	CORSOrigins    []string
	RateLimit      bool
	TrustedProxies []string
	Log            *slog.Logger
	Metrics        *Metrics    // nil: none are kept
	Playground     *Playground // nil: no page
}

// Assemble builds the public handler from its parts.
func Assemble(p Parts) (http.Handler, error) {
	carts := cart.NewService(cart.Config{
		Redis: cart.NewRedis(cart.RedisConfig{
			Client: p.Redis, TTL: p.CartTTL, Limits: p.CartLimits, Durable: p.Durable,
			MinReplicas: p.RedisMinReplicas, Sentinels: p.RedisSentinels,
		}),
		Catalog:  p.Catalog,
		Coupons:  p.Coupons,
		Limits:   p.CartLimits,
		Strategy: p.Strategy,
		Budget:   p.RedisBudget,
		Now:      p.Now,
		Log:      p.Log,
	})
	origins, err := newOrigins(p.PublicURL, p.BasePath, p.TrustedProxies)
	if err != nil {
		return nil, err
	}
	callers := auth.NewCartCallers(auth.Config{Stores: p.Stores, Tokens: p.JWT, DefaultStore: p.DefaultStore})
	prices := money.NewFormatter()
	areas := []Routes{cart.NewAPI(callers, carts, prices, APIName).Routes()}
	if p.Subscriptions != nil {
		areas = append(areas, subscriptions.NewAPI(subscriptions.Config{
			Source: p.Subscriptions, Tokens: p.APITokens, Used: p.APITokenUsed,
			Prices: prices, Name: APIName, Origin: origins.of, Now: p.Now,
		}).Routes())
	}
	handler, err := NewHandler(Config{
		Areas:          areas,
		BasePath:       p.BasePath,
		CORSOrigins:    p.CORSOrigins,
		RateLimit:      p.RateLimit,
		TrustedProxies: p.TrustedProxies,
		Log:            p.Log,
		Metrics:        p.Metrics,
		Playground:     p.Playground,
		Language:       callers.Language,
	})
	if err != nil {
		return nil, err
	}
	return origins.warn(handler, p.Log), nil
}
