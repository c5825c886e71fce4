package pages

import (
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"

	"commerce/cart/wire"
	"commerce/docs"
)

// documentRoutes serves the OpenAPI document, as it is written and as JSON. The first request
// for JSON converts it. protect sets the headers that protect each response of the API.
func documentRoutes(protect func(http.Header)) []wire.Route {
	asJSON := sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(docs.OpenAPI) })
	asYAML := func() ([]byte, error) { return docs.OpenAPI, nil }
	return []wire.Route{
		{Method: http.MethodGet, Path: "/openapi.yaml", Handle: document("application/yaml; charset=utf-8", asYAML, protect)},
		{Method: http.MethodGet, Path: "/openapi.json", Handle: document("application/json; charset=utf-8", asJSON, protect)},
	}
}

func document(contentType string, content func() ([]byte, error), protect func(http.Header)) wire.Handler {
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
