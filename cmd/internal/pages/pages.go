// Package pages serves the playground, the API reference, the OpenAPI document and storefront.js.
package pages

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"

	"commerce/auth/problem"
	"commerce/cart/wire"
	"commerce/docs"
)

// Config says which pages to serve.
type Config struct {
	Playground *Playground // and the reference; nil: neither
	BasePath   string

	NotFound *problem.Error    // the answer to pages of other origins
	Protect  func(http.Header) // sets the headers that protect each response of the API
}

// Areas returns the routes of all pages and of the demo's backstage calls.
func Areas(c Config) []wire.Area {
	all := slices.Concat(
		playgroundRoutes(c.Playground, c.BasePath),
		referenceRoutes(c.Playground),
		publicRoutes(c.Protect),
	)
	return []wire.Area{{Routes: all}, backstageArea(c.Playground, c.NotFound)}
}

func get(path string, handle wire.Handler) wire.Route {
	return wire.Route{Method: http.MethodGet, Path: path, Handle: handle}
}

// publicRoutes serves the OpenAPI document, as it is written and as JSON, and storefront.js. The first
// request for JSON converts it. protect sets the headers that protect each response of the API.
func publicRoutes(protect func(http.Header)) []wire.Route {
	asJSON := sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(docs.OpenAPI) })
	asYAML := func() ([]byte, error) { return docs.OpenAPI, nil }
	file := func(contentType string, content func() ([]byte, error)) wire.Handler {
		return func(c *gin.Context) (wire.Answer, error) {
			text, err := content()
			if err != nil {
				return wire.Answer{}, err
			}
			protect(c.Writer.Header())
			c.Header("Cache-Control", "public, max-age=300")
			sendFile(c, contentType, etagOf(text), text)
			return wire.Answer{}, nil
		}
	}
	script := file(contentTypes[".js"], func() ([]byte, error) { return docs.Storefront, nil })
	return []wire.Route{
		get("/openapi.yaml", file("application/yaml; charset=utf-8", asYAML)),
		get("/openapi.json", file("application/json; charset=utf-8", asJSON)),
		get("/storefront.js", func(c *gin.Context) (wire.Answer, error) {
			c.Header("Access-Control-Allow-Origin", "*") // CORS_ORIGINS is for the API
			return script(c)
		}),
	}
}

// referencePolicy allows the page's own origin, and styles that its viewer's script sets.
const referencePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// referenceRoutes serves the page that shows the OpenAPI document at "/docs", and its files
// below, if there is a playground. The samples of requests use the demo's tokens, if there are any.
func referenceRoutes(p *Playground) (routes []wire.Route) {
	if p == nil {
		return nil
	}
	for _, name := range namesOf(docs.Reference, ".") {
		_, path, _ := strings.Cut(strings.TrimSuffix(name, ".gz"), "/") // below reference or playground
		if path = "/docs/" + path; path == "/docs/index.html" {
			path = "/docs"
		}
		routes = append(routes, get(path, pageFile(docs.Reference, name, referencePolicy)))
	}
	demo := &Demo{}
	if p.Demo != nil {
		demo = p.Demo
	}
	return append(routes,
		get("/docs/demo.json", demo.offer),
		get("/docs/", moved("../docs")), // the page's URLs are relative to one without "/"
	)
}
