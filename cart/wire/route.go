// Package wire is how both areas answer over HTTP: their routes, what a handler
// returns, and the writer of JSON. The server puts the envelope around it.
package wire

import (
	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
)

// Area is one part of the API.
type Area struct {
	Routes  []Route // in the order in which people read them
	Vary    string  // request headers that its answers depend on
	Success bool    // whether the envelope of its answers begins with "success": true
}

// Route is one call of the API.
type Route struct {
	Method string
	Path   string // as Gin takes it, such as "/cart/items/:item_id"
	Handle Handler
}

// Handler answers a call. With an error, which should be a problem.Error, the answer
// is what the response carries beside it: its language, data and ETag.
type Handler func(*gin.Context) (Answer, error)

// Answer is what a handler shows.
type Answer struct {
	// Data writes the member data. nil: null beside an error, else the handler has
	// written the response itself.
	Data func(*Writer)

	Language locale.Locale // of texts; "" when not even the caller is known

	// Version is the part of the ETag before "-"; "" for an answer without an ETag.
	Version string

	// Known are the ETags that the client holds, from If-None-Match.
	Known Tags

	// Once is for an answer that no cache may show again, such as a report.
	Once bool
}
