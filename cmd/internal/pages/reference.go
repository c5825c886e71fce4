package pages

import (
	"commerce/cart/wire"
	"commerce/docs"
)

// referencePolicy lets the reference use only its own origin, and forbids frames. Its viewer
// sets styles in its script.
const referencePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// referenceRoutes serves the page that shows the OpenAPI document at "/docs", and its files
// below. It returns no routes if the page is off. The samples of requests use
// the demo's tokens, if there are any.
func referenceRoutes(on bool, p *Playground) (routes []wire.Route) {
	if !on {
		return nil
	}
	for path, name := range map[string]string{
		"/docs":             "reference/index.html",
		"/docs/page.css":    "reference/page.css",
		"/docs/page.js":     "reference/page.js",
		"/docs/LICENSE.txt": "reference/LICENSE.txt",
		"/docs/icon.svg":    "playground/icon.svg",
		"/docs/viewer.js":   "reference/viewer.js.gz",
	} {
		files := docs.Reference
		if name == "playground/icon.svg" {
			files = docs.Playground
		}
		routes = append(routes, get(path, pageFile(files, name, referencePolicy)))
	}
	demo := &Demo{}
	if p != nil && p.Demo != nil {
		demo = p.Demo
	}
	return append(routes,
		get("/docs/demo.json", demo.offer),
		get("/docs/", moved("../docs")), // the page's URLs are relative to one without "/"
	)
}
