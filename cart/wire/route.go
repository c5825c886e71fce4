// Package wire defines how both areas of the API answer over HTTP: routes, what a handler
// returns, and the JSON writer. The server adds the envelope.
package wire

import (
	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
)

// Area is one part of the API.
type Area struct {
	Routes  []Route // in the order in which to document them
	Vary    string  // request headers that its answers depend on
	Success bool    // whether the envelope of its answers begins with "success": true
}

// Route is one call of the API.
type Route struct {
	Method string
	Path   string // as Gin takes it, such as "/cart/items/:item_id"
	Handle Handler
}

// Handler handles a call. An error should be a problem.Error; the answer then gives the
// language, data and ETag of the error response.
type Handler func(*gin.Context) (Answer, error)

// Answer is what a handler returns for the response.
type Answer struct {
	// Data writes the member data. nil means null with an error; without an error it
	// means that the handler has written the response itself.
	Data func(*Writer)

	Language locale.Locale // of texts; "" when the caller could not be identified

	// Version is the part of the ETag before "-"; "" for an answer without an ETag.
	Version string

	// Known are the ETags that the client has cached, from If-None-Match.
	Known Tags

	// Once marks an answer that must not be cached, such as the report of a merge.
	Once bool
}
