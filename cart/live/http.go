package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"commerce/cart/carthttp"
	"commerce/cart/wire"
)

// Extend adds the call that follows a cart to those of the cart.
func (s *Streams) Extend(api *carthttp.API) { api.Handle("GET", "/cart/events", s.events) }

// reconnects is the time over which clients reconnect after a deploy has ended all streams.
const reconnects = 10 * time.Second

func (s *Streams) events(c *carthttp.Call) (wire.Answer, error) {
	if c.ReadOnly {
		return wire.Answer{Events: &wire.Events{Close: func() {}}}, s.MayListen(c.Ctx(), c.Visit)
	}
	stream, err := s.Listen(c.Ctx(), c.Visit)
	if err != nil {
		return wire.Answer{}, err
	}
	e := &cartEvents{Stream: stream, known: c.GetHeader("Last-Event-ID")}
	return wire.Answer{Events: &wire.Events{Next: e.next, Wake: stream.Wake, Close: stream.Close, Until: c.Until}}, nil
}

type cartEvents struct {
	*Stream
	begun bool
	known string // the last event that the client has, when it begins
}

var errCartGone = errors.New("the cart is gone")

// next returns the next event, with an error after that of a cart that is gone.
func (e *cartEvents) next() (event []byte, err error) {
	seen, ok, err := e.Stream.Next()
	if !ok {
		return nil, err
	}
	if seen.Gone {
		err = errCartGone
	}
	if !e.begun {
		e.begun = true
		event = fmt.Appendf(nil, "retry: %d\n\n", rand.N(reconnects).Milliseconds())
		if seen.Tag == e.known {
			return event, err
		}
	}
	return fmt.Appendf(event, "event: cart\nid: %s\ndata: {\"version\":%d}\n\n", seen.Tag, seen.Version), err
}
