package server

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
)

// announced adds the headers of a removal to all responses of a handler.
func announced(r wire.Removal, handle gin.HandlerFunc) gin.HandlerFunc {
	since := fmt.Sprintf("@%d", r.Deprecated.Unix())
	sunset := r.Sunset.UTC().Format(http.TimeFormat)
	return func(c *gin.Context) {
		c.Header("Deprecation", since)
		c.Header("Sunset", sunset)
		handle(c)
	}
}
