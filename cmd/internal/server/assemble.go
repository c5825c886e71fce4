package server

import (
	"net/http"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/cart/carthttp"
	"commerce/cart/handover"
	"commerce/cart/live"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/share"
	"commerce/cart/ucp"
	"commerce/cart/ucp/agent"
	"commerce/cart/ucp/platform"
	"commerce/cart/undo"
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

	Live          live.Config   // except for Opened, which Assemble sets
	WrongCodes    *limit.Window // of shares; nil: no limit
	UCP           bool          // whether agents have endpoints
	TrustProfiles bool          // whether agents' platforms need no profile that can be fetched
	LocalProfiles bool          // whether profiles may be on this machine, for requests from it

	APITokens    *auth.APITokens // verifies stores' API tokens
	APITokenUsed func(id int64)  // called for each accepted token; nil: nothing is called

	Stopping func() bool // whether streams must end because the process stops; nil: never

	Failures *limit.Quota // invalid access tokens of one client; nil: no limit
}

// core is the cart without the packages beside it.
type core struct {
	*Parts
	carts   *service.Carts
	callers *auth.CartCallers
	api     *carthttp.API
	origins origins
}

// addition is what a package beside the core adds to the service.
type addition struct {
	pkg    string
	add    func(*core)
	stores []redisstore.Beside // what it stores next to carts

	// summary says in words what a Holding is, if the package stores that; otherwise "". nil if it stores nothing.
	summary func(redisstore.Holding) string
}

// beside lists what the packages beside the core add. Nothing else needs them: without one, only its calls are missing.
func beside() []addition {
	return []addition{
		{pkg: "handover", add: func(c *core) { handover.New(c.carts).Extend(c.api) }},
		{pkg: "undo", add: func(c *core) { undo.New(c.carts).Extend(c.api) }},
		{pkg: "share", add: func(c *core) { share.New(c.carts, c.WrongCodes).Extend(c.api) }, stores: share.Stored(), summary: share.Summary},
		{pkg: "live", add: func(c *core) { live.New(c.carts, c.Live).Extend(c.api) }},
		{pkg: "ucp", add: (*core).addAgents, stores: agent.Stored(), summary: agent.Summary},
	}
}

// Beside describes what the packages beside the core store, so that it is erased with a cart.
func Beside() (all []redisstore.Beside) {
	for _, each := range beside() {
		all = append(all, each.stores...)
	}
	return all
}

// SummaryBeside says in words what a package beside the core has stored; "" for anything else.
func SummaryBeside(h redisstore.Holding) string {
	for _, each := range beside() {
		if each.summary != nil {
			if text := each.summary(h); text != "" {
				return text
			}
		}
	}
	return ""
}

// Assemble returns the public handler of the service.
func Assemble(p Parts) (http.Handler, error) { return assemble(p, beside()) }

func assemble(p Parts, beside []addition) (http.Handler, error) {
	p.Redis.Now, p.Redis.Undoable = p.Now, p.Carts.Keys != nil
	p.Redis.PublishFailed, p.Redis.ReplyLost = p.Metrics.PublishFailed, p.Metrics.ReplyLost
	p.Carts.Redis, p.Carts.Now, p.Carts.Log, p.Carts.Events = redisstore.New(p.Redis), p.Now, p.Log, p.Metrics.CartEvents()
	p.Live.Opened = p.Metrics.Streams
	origins, err := newOrigins(p.PublicURL, p.BasePath, p.TrustedProxies)
	if err != nil {
		return nil, err
	}
	if p.CountryHeader != "" && len(p.TrustedProxies) == 0 {
		p.Log.Warn("COUNTRY_HEADER has no effect, because there are no TRUSTED_PROXIES that may set it")
	}
	callers := auth.NewCartCallers(auth.Config{
		Stores: p.Stores, Tokens: p.JWT, DefaultStore: p.DefaultStore, Failures: p.Failures,
	})
	carts := service.New(p.Carts)
	c := &core{&p, carts, callers, carthttp.New(callers, carts, p.BasePath, origins.of, origins.country(p.CountryHeader)), origins}
	p.Language, p.Areas = callers.Language, nil
	for _, each := range beside {
		each.add(c)
	}
	p.Areas = append([]wire.Area{c.api.Area()}, p.Areas...)
	if p.Subscriptions != nil {
		p.Areas = append(p.Areas, subscriptionshttp.New(subscriptionshttp.Config{
			Source: p.Subscriptions, Tokens: p.APITokens, Used: p.APITokenUsed,
			Origin: origins.of, Stopping: p.Stopping, Now: p.Now,
		}).Area(p.SubscriptionCalls...))
	}
	return NewHandler(p.Config)
}

// addAgents adds the endpoints of agents, if the settings ask for them.
func (c *core) addAgents() {
	if !c.UCP {
		return
	}
	limit := func(string, bool) error { return nil }
	if c.RateLimit {
		limit = limitProfiles(c.Now)
	}
	c.Areas = append(c.Areas, ucp.New(ucp.Config{
		Callers: c.callers, Carts: c.carts, BasePath: c.BasePath, Origin: c.origins.of, Host: c.origins.hostOf, Allowed: newCrossOrigins(c.CORSOrigins).allow, Limit: limit,
		Profiles: platform.Config{Trust: c.TrustProfiles, Loopback: c.LocalProfiles, Now: c.Now},
	}).Area())
}
