// Package ucp serves the cart to the agents of shoppers, by the Universal Commerce Protocol: its cart
// capability with the discount extension, over REST and over MCP (https://ucp.dev). Both are thin layers
// over the same calls, which have the use cases and rules of the storefront's calls.
package ucp

import (
	"net/http"
	"strings"

	"commerce/auth"
	"commerce/cart/service"
	"commerce/cart/ucp/agent"
	"commerce/cart/ucp/platform"
	"commerce/cart/wire"
)

// Config configures an API. All members are required.
type Config struct {
	Callers  *auth.CartCallers
	Carts    *service.Carts
	Profiles platform.Config // except for Releases
	BasePath string          // prefix of the paths of calls; "" for none

	// Origin returns the URL in front of BasePath by which the client of a request reaches the service,
	// such as "https://shop.example.com".
	Origin func(*http.Request) string

	// Host returns the host that the client of a request has called, maybe with a port.
	Host func(*http.Request) string

	// Allowed reports whether the scripts of an origin may read responses.
	Allowed func(origin string) bool

	// Limit refuses a read or a change beyond the rate of the agents with a profile.
	Limit func(profile string, reads bool) error
}

type API struct {
	Config
	agents   *agent.Carts
	profiles *platform.Directory
}

func New(c Config) *API {
	c.Profiles.Releases = platformReleases()
	return &API{c, agent.New(c.Carts), platform.NewDirectory(c.Profiles)}
}

const (
	profilePath = "/.well-known/ucp"
	prefix      = "/ucp/"
	base        = prefix + ":key"
	profiles    = "/profiles/"
	buy         = "/buy"
)

// Area lists every call of agents.
func (a *API) Area() wire.Area {
	return wire.Area{
		Vary: "UCP-Agent, Accept-Language, Origin",
		Bare: bare,
		Routes: []wire.Route{
			{Method: "POST", Path: base + "/carts", Handle: a.rest(create)},
			{Method: "GET", Path: base + "/carts/:id", Handle: a.rest(get)},
			{Method: "PUT", Path: base + "/carts/:id", Handle: a.rest(update)},
			{Method: "POST", Path: base + "/carts/:id/cancel", Handle: a.rest(cancel)},
			{Method: "POST", Path: base + "/mcp", Handle: a.mcp},
			{Method: "GET", Path: profilePath, AtRoot: true, Handle: a.profile},
			{Method: "GET", Path: base + profiles + ":release", Handle: a.profileOfRelease},
			{Method: "GET", Path: base + buy + "/:items", Handle: a.permalink},
		},
	}
}

func bare(path string) wire.Failure {
	switch {
	case strings.HasPrefix(path, prefix) && strings.HasSuffix(path, "/mcp"):
		return rpcFailure(nil, "")
	case strings.HasPrefix(path, prefix), path == profilePath:
		return restFailure("")
	}
	return nil
}
