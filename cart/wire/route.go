// Package wire defines how the areas of the API answer over HTTP: routes, what a handler
// returns, and the JSON writer. The server adds the envelope.
package wire

import (
	"context"
	"iter"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

type Area struct {
	Routes  []Route // in the order in which to document them
	Vary    string  // request headers that its answers depend on
	Success bool    // whether the envelope of its answers begins with "success": true
	Private bool    // whether its answers have personal data, which no cache may store

	// Bare returns how an error on one of the area's paths is written, also one that no handler has
	// returned; nil for other paths. If Bare is not nil, no answer of the area has an envelope.
	Bare func(path string) Failure
}

// Failure writes the body of an error without an envelope.
type Failure func(w *Writer, e *problem.Error, status int)

type Route struct {
	Method string
	Path   string // as Gin takes it, such as "/cart/items/:item_id"
	AtRoot bool   // the path is at the root of the host, whatever BASE_PATH is
	Vary   string // further request headers that its answers depend on
	Handle Handler
}

// Handler handles a call. An error should be a problem.Error; the answer then gives the
// language, data and ETag of the error response.
type Handler func(*gin.Context) (Answer, error)

type Answer struct {
	// Data writes the member data, or all of a response without an envelope. nil means null with an
	// error; without an error it means that Unchanged, Later, Stream or Events is set, or that the handler has written
	// the response itself.
	Data func(*Writer)

	// Failure writes the error instead of the one of Area.Bare; nil: that one.
	Failure Failure

	Status int    // of a response without an error; 0: 200
	Cache  string // Cache-Control of a response without an error; "": the area's

	// Later returns Data when there is some. nil: Data is set already.
	Later Later

	// Stream or Events is the response instead of Data, without an envelope.
	Stream *Stream
	Events *Events

	Language locale.Locale // of texts; "" when the caller could not be identified

	// Store and Caller are for the log and traces; zero if the caller could not be identified.
	Store  int64
	Caller Caller

	// Version is the part of the ETag before "-"; "" for an answer without an ETag.
	Version string

	// Known are the ETags that the client has cached, from If-None-Match.
	Known Tags

	// Unchanged is the one of them that the data has, without quotes, if that is known without Data.
	Unchanged string
}

// Caller is the kind of a caller.
type Caller string

const (
	Guest    Caller = "guest"
	Customer Caller = "customer"
	Merchant Caller = "merchant"
	Agent    Caller = "agent"
)

// Later makes an answer that may take long. It calls pause for each time that it waits.
type Later func(pause Pause) (data func(*Writer), err error)

// Pause calls wait, whose context has no deadline. It ends when the client disconnects, or when
// the process stops. Meanwhile the request has no place among those in flight. Afterwards it
// has its whole deadline, and if wait returned true, because work follows, a place.
type Pause func(wait func(context.Context) bool) error

// Stream is a response of any length that is sent while it is made.
type Stream struct {
	ContentType string

	// Parts yields the body. It may use w, whose language is the answer's. Its context has no
	// deadline and ends when the client disconnects. An error before the first part is an
	// error response; a later one closes the connection.
	Parts func(ctx context.Context, w *Writer) iter.Seq2[[]byte, error]
}

// Events is a response of server-sent events, which can last for days.
type Events struct {
	// Next returns the next event as it is to be sent; nil if none waits. An error ends the response, after
	// the event if there is one. Wake sets a function that is called, from any goroutine, when one waits.
	Next func() ([]byte, error)
	Wake func(func())

	Close func()
	Until time.Time // when the response ends; zero: never
}
