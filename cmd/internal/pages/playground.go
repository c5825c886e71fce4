package pages

import (
	"net/http"
	"path"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/docs"
)

// Playground is the page at the base path that tries the API in a browser.
type Playground struct {
	Demo *Demo // nil: the page asks for tokens
}

// Demo is what only the demo offers to the page. Everyone who can open the page can read the
// tokens and use the calls, so they are for sample data only.
type Demo struct {
	CustomerJWT   string         `json:"customer_jwt"` // of the first of Customers
	APIToken      string         `json:"api_token"`    // of the sample store
	Customers     []DemoCustomer `json:"customers"`
	ExpiredJWT    string         `json:"expired_jwt"`     // of the first of Customers
	LongListToken string         `json:"long_list_token"` // an API token of a store with many subscriptions
	Agent         bool           `json:"agent"`           // whether it serves carts to AI agents; offered only to this machine

	// Backstage are calls that change what other systems change in reality.
	Backstage []wire.Route `json:"-"`
}

// DemoCustomer is a customer that a visitor of the page can log in as.
type DemoCustomer struct {
	ID   string      `json:"id"`
	Name locale.Text `json:"name"`
	JWT  string      `json:"jwt"`
}

// pagePolicy lets the page use only its own origin, and forbids frames.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const pictures = "playground/pictures"

// playgroundRoutes serves the page at "/", its files below "/playground" and what the demo offers
// at "/playground/demo.json". For nil, it serves only the pictures, because a store can have the
// sample's products without the page.
func playgroundRoutes(p *Playground, basePath string) (routes []wire.Route) {
	root := "playground"
	if p == nil {
		root = pictures
	}
	for _, name := range namesOf(docs.Playground, root) {
		serve := pageFile(docs.Playground, name, pagePolicy)
		if name == "playground/index.html" {
			name = ""
		}
		routes = append(routes, get("/"+name, serve))
	}
	if p == nil {
		return routes
	}
	if basePath != "" { // the page's URLs are relative to one that ends in "/"
		routes = append(routes, get("", moved(path.Base(basePath)+"/")))
	}
	if p.Demo != nil {
		routes = append(routes, get("/playground/demo.json", p.Demo.offer))
	}
	return routes
}

// backstageArea serves the demo's backstage calls, if there are any. Pages of other origins get
// notFound, whatever CORS_ORIGINS allows to call the API.
func backstageArea(p *Playground, notFound *problem.Error) wire.Area {
	area := wire.Area{Success: true, Private: true}
	if p == nil || p.Demo == nil {
		return area
	}
	protection := http.NewCrossOriginProtection()
	for _, r := range p.Demo.Backstage {
		handle := r.Handle
		r.Handle = func(c *gin.Context) (wire.Answer, error) {
			c.Writer.Header().Del("Access-Control-Allow-Origin")
			if err := protection.Check(c.Request); err != nil {
				return wire.Answer{}, notFound.Because(err)
			}
			return handle(c)
		}
		area.Routes = append(area.Routes, r)
	}
	return area
}

// offer serves what the demo offers, to its own origin only: CORS_ORIGINS is for the API.
func (d *Demo) offer(c *gin.Context) (wire.Answer, error) {
	c.Writer.Header().Del("Access-Control-Allow-Origin")
	c.Header("Cache-Control", "no-store")
	pageHeaders(c, pagePolicy)
	offered := *d
	offered.Agent = d.Agent && auth.IsLocal(c.Request)
	c.JSON(http.StatusOK, struct {
		Demo
		Backstage bool `json:"backstage"`
	}{offered, len(d.Backstage) > 0})
	return wire.Answer{}, nil
}
