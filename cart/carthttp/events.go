package carthttp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"commerce/cart/service"
	"commerce/cart/wire"
)

// reconnects is the time over which clients reconnect after a deploy has ended all streams.
const reconnects = 10 * time.Second

func (a *API) events(c *call) (wire.Answer, error) {
	if c.ReadOnly {
		return wire.Answer{Events: &wire.Events{Close: func() {}}}, a.carts.MayListen(c.ctx(), c.Visit)
	}
	stream, err := a.carts.Listen(c.ctx(), c.Visit)
	if err != nil {
		return wire.Answer{}, err
	}
	e := &cartEvents{Stream: stream, known: c.GetHeader("Last-Event-ID")}
	return wire.Answer{Events: &wire.Events{Next: e.next, Wake: stream.Wake, Close: stream.Close, Until: c.Until}}, nil
}

type cartEvents struct {
	*service.Stream
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
