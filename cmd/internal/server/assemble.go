package server

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/money"
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

	CartTTL     cart.TTLs
	CartLimits  cart.Limits
	Strategy    cart.Strategy
	RedisBudget time.Duration    // of each request; 0 for the default
	Now         func() time.Time // nil for time.Now

	BasePath       string
	CORSOrigins    []string
	RateLimit      bool
	TrustedProxies []string
	Log            *slog.Logger
	Metrics        *Metrics // nil: none are kept
}

// Assemble builds the public handler from its parts.
func Assemble(p Parts) (http.Handler, error) {
	carts := cart.NewService(cart.Config{
		Redis:    cart.NewRedis(p.Redis, p.CartTTL, p.CartLimits),
		Catalog:  p.Catalog,
		Coupons:  p.Coupons,
		Limits:   p.CartLimits,
		Strategy: p.Strategy,
		Budget:   p.RedisBudget,
		Now:      p.Now,
		Log:      p.Log,
	})
	callers := auth.NewCartCallers(auth.Config{Stores: p.Stores, Tokens: p.JWT, DefaultStore: p.DefaultStore})
	return NewHandler(Config{
		Areas: []Routes{
			cart.NewAPI(callers, carts, money.NewFormatter(), APIName).Routes(),
		},
		BasePath:       p.BasePath,
		CORSOrigins:    p.CORSOrigins,
		RateLimit:      p.RateLimit,
		TrustedProxies: p.TrustedProxies,
		Log:            p.Log,
		Metrics:        p.Metrics,
	})
}
