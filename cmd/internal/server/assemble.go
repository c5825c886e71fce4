package server

import (
	"net/http"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/cart/carthttp"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/ucp"
	"commerce/cart/ucp/platform"
	"commerce/cart/wire"
	"commerce/subscriptions"
	"commerce/subscriptions/subscriptionshttp"
)

// Parts are the dependencies and settings. Only in these the demo, the service and tests differ.
type Parts struct {
	Config // except for Areas and Language, which Assemble sets

	Redis redisstore.Config // except for Now, which Assemble sets
	Carts service.Config    // except for Redis, Now, Log and Events, which Assemble sets

	Stores       auth.StoreDirectory
	JWT          *auth.JWT // nil: every access token is refused
	DefaultStore int64     // 0: the only store, if there is exactly one

	Subscriptions     subscriptions.Source      // nil: the subscription routes do not exist
	SubscriptionCalls []subscriptionshttp.Calls // more of these routes

	UCP           bool // whether agents have endpoints
	TrustProfiles bool // whether agents' platforms need no profile that can be fetched
	LocalProfiles bool // whether profiles may be on this machine, for requests from it

	APITokens    *auth.APITokens // verifies stores' API tokens
	APITokenUsed func(id int64)  // called for each accepted token; nil: nothing is called

	Stopping func() bool // whether streams must end because the process stops; nil: never

	Failures *limit.Quota // invalid access tokens of one client; nil: no limit
}

// Assemble returns the public handler of the service.
func Assemble(p Parts) (http.Handler, error) {
	p.Redis.Now, p.Redis.Undoable = p.Now, p.Carts.Keys != nil
	p.Redis.PublishFailed, p.Redis.ReplyLost = p.Metrics.PublishFailed, p.Metrics.ReplyLost
	p.Carts.Redis, p.Carts.Now, p.Carts.Log, p.Carts.Events = redisstore.New(p.Redis), p.Now, p.Log, p.Metrics.CartEvents()
	carts := service.New(p.Carts)
	origins, err := newOrigins(p.PublicURL, p.BasePath, p.TrustedProxies)
	if err != nil {
		return nil, err
	}
	callers := auth.NewCartCallers(auth.Config{
		Stores: p.Stores, Tokens: p.JWT, DefaultStore: p.DefaultStore, Failures: p.Failures,
	})
	p.Language = callers.Language
	p.Areas = []wire.Area{carthttp.New(callers, carts, p.BasePath, origins.of).Area()}
	if p.UCP {
		limit := func(string, bool) error { return nil }
		if p.RateLimit {
			limit = limitProfiles(p.Now)
		}
		p.Areas = append(p.Areas, ucp.New(ucp.Config{
			Callers: callers, Carts: carts, BasePath: p.BasePath, Origin: origins.of, Host: origins.hostOf, Allowed: newCrossOrigins(p.CORSOrigins).allow, Limit: limit,
			Profiles: platform.Config{Trust: p.TrustProfiles, Loopback: p.LocalProfiles, Now: p.Now},
		}).Area())
	}
	if p.Subscriptions != nil {
		p.Areas = append(p.Areas, subscriptionshttp.New(subscriptionshttp.Config{
			Source: p.Subscriptions, Tokens: p.APITokens, Used: p.APITokenUsed,
			Origin: origins.of, Stopping: p.Stopping, Now: p.Now,
		}).Area(p.SubscriptionCalls...))
	}
	return NewHandler(p.Config)
}
