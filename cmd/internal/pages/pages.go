// Package pages serves the playground, the API reference and the OpenAPI document.
package pages

import (
	"net/http"
	"slices"

	"commerce/auth/problem"
	"commerce/cart/wire"
)

// Config says which pages to serve.
type Config struct {
	Playground *Playground // nil: none
	Reference  bool
	BasePath   string

	NotFound *problem.Error    // the answer to pages of other origins
	Protect  func(http.Header) // sets the headers that protect each response of the API
}

// Areas returns the routes of all pages and of the demo's backstage calls.
func Areas(c Config) ([]wire.Area, error) {
	playground, err := playgroundRoutes(c.Playground, c.BasePath)
	if err != nil {
		return nil, err
	}
	reference, err := referenceRoutes(c.Reference, c.Playground)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(playground, reference, documentRoutes(c.Protect))
	return []wire.Area{{Routes: all}, backstageArea(c.Playground, c.NotFound)}, nil
}
