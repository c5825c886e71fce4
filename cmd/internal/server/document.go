package server

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"

	"commerce/cart/wire"
	"commerce/docs"
)

// documentRoutes serves the OpenAPI document, as it is written and as JSON. The first request
// for JSON converts it.
func documentRoutes() []wire.Route {
	asJSON := sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(docs.OpenAPI) })
	asYAML := func() ([]byte, error) { return docs.OpenAPI, nil }
	return []wire.Route{
		{Method: http.MethodGet, Path: "/openapi.yaml", Handle: document("application/yaml; charset=utf-8", asYAML)},
		{Method: http.MethodGet, Path: "/openapi.json", Handle: document("application/json; charset=utf-8", asJSON)},
	}
}

func document(contentType string, content func() ([]byte, error)) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		text, err := content()
		if err != nil {
			return wire.Answer{}, err
		}
		protect(c.Writer.Header())
		c.Header("Content-Type", contentType)
		c.Header("Cache-Control", "public, max-age=300")
		c.Header("ETag", etagOf(text))
		c.Request.Header.Del("Range") // a part of the document is of no use, and a wrong range would be an error of net/http
		http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(text))
		return wire.Answer{}, nil
	}
}
