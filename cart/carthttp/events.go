package carthttp

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"commerce/cart/service"
	"commerce/cart/wire"
)

// reconnects spread over this time after a deploy has ended all streams.
const reconnects = 10 * time.Second

// events answers with a stream of the versions of the caller's cart.
func (a *API) events(c *call) (wire.Answer, error) {
	stream, err := a.carts.Listen(c.ctx(), c.Visit)
	if err != nil {
		return wire.Answer{}, err
	}
	e := &cartEvents{Stream: stream, known: c.GetHeader("Last-Event-ID")}
	return wire.Answer{Events: &wire.Events{Next: e.next, Close: stream.Close, Until: c.Until}}, nil
}

type cartEvents struct {
	*service.Stream
	known string // the event that the client has had; for the first one
	begun bool
	ended bool
}

// next returns the next event as it is sent. After that of a cart that is gone, it returns io.EOF.
func (e *cartEvents) next(ctx context.Context) ([]byte, error) {
	if e.ended {
		return nil, io.EOF
	}
	seen, err := e.Stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	e.ended = seen.Gone
	var event []byte
	if !e.begun {
		e.begun = true
		event = fmt.Appendf(event, "retry: %d\n\n", rand.N(reconnects).Milliseconds())
		if seen.Tag == e.known {
			return event, nil
		}
	}
	return fmt.Appendf(event, "event: cart\nid: %s\ndata: {\"version\":%d}\n\n", seen.Tag, seen.Version), nil
}
