package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/redisstore"
)

// Limits of the streams that an instance has at the same time, because each takes memory and a connection.
const (
	maxStreams    = 10_000
	cartStreams   = 4   // of one cart
	ClientStreams = 100 // of one client
)

type streams struct{ ofCarts, ofClients *limit.Slots[string] }

func newStreams(perClient int) streams {
	return streams{
		ofCarts:   limit.NewSlots[string](limit.SlotsConfig{All: maxStreams, Each: cartStreams}),
		ofClients: limit.NewSlots[string](limit.SlotsConfig{Each: cmp.Or(perClient, maxStreams)}),
	}
}

func (s streams) enter(ctx context.Context, cart, client string) (leave func(), err error) {
	leaveCart, err := s.ofCarts.Enter(ctx, cart)
	if err != nil {
		return nil, errManyStreams
	}
	leaveClient, err := s.ofClients.Enter(ctx, client)
	if err != nil {
		leaveCart()
		return nil, errManyStreams
	}
	return func() {
		leaveClient()
		leaveCart()
	}, nil
}

// Stream follows the states of one cart.
type Stream struct {
	*redisstore.Listener
	events *Events
	leave  func()
}

// Listen follows the visit's cart. It merges nothing. The caller closes the stream. Errors:
// problem.Unauthenticated, problem.NotFound if nothing is stored, problem.Unavailable.
func (s *Carts) Listen(ctx context.Context, v *Visit) (*Stream, error) {
	if v.Fresh {
		return nil, errNoCredential
	}
	leave, err := s.streams.enter(ctx, v.own.String(), v.client)
	if err != nil {
		return nil, err
	}
	ctx, trip := v.budget.spend(ctx, 1)
	defer trip.done()
	l, err := s.Redis.Listen(ctx, v.own)
	if err != nil {
		leave()
		if errors.Is(err, redisstore.ErrNoCart) {
			err = errNoCart
		}
		return nil, err
	}
	s.Events.Streams(1)
	return &Stream{l, &s.Events, leave}, nil
}

// MayListen returns the error of Listen without listening, so it changes nothing in Redis.
func (s *Carts) MayListen(ctx context.Context, v *Visit) error {
	if v.Fresh {
		return errNoCredential
	}
	stored, err := s.loadOwn(ctx, v)
	if err == nil && stored.ID == "" {
		err = errNoCart
	}
	return err
}

// Next returns the next state of the cart. ok is false if none waits.
func (s *Stream) Next() (seen redisstore.Sighting, ok bool, err error) {
	if seen, ok, err = s.Listener.Next(); ok {
		s.events.Seen()
	}
	return seen, ok, err
}

func (s *Stream) Close() {
	s.Listener.Close()
	s.leave()
	s.events.Streams(-1)
}

var (
	errNoCredential = &problem.Error{
		Code: problem.Unauthenticated, Kind: "missing",
		Faults: problem.New("", "X-Cart-Token", locale.Text{
			locale.En: "To follow a cart, log in, or send its token in the header X-Cart-Token.",
			locale.Ar: "لمتابعة السلة سجّل الدخول أو أرسل رمزها في الترويسة X-Cart-Token.",
		}).Faults,
	}
	errNoCart = problem.New(problem.NotFound, "", locale.Text{
		locale.En: "There is no cart to follow yet. Add an item first.",
		locale.Ar: "لا توجد سلة لمتابعتها بعد. أضف منتجًا أولًا.",
	})
	errManyStreams = &problem.Error{
		Code: problem.Unavailable, Budget: problem.Budget{Name: "streams"}, RetryAfter: 10 * time.Second,
		Faults: problem.New("", "", locale.Text{
			locale.En: "Too many pages follow carts right now. Please try again in a moment.",
			locale.Ar: "صفحات كثيرة جدًا تتابع السلات الآن. يُرجى المحاولة بعد لحظات.",
		}).Faults,
	}
)
