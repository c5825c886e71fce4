package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/service"
)

// Limits of the streams that an instance has at the same time, because each takes memory and a connection.
const (
	MaxStreams    = 10_000
	cartStreams   = 4   // of one cart
	ClientStreams = 100 // of one client
)

// Config configures Streams.
type Config struct {
	Streams       int              // how many streams all clients may have at the same time; 0: MaxStreams
	ClientStreams int              // how many streams a client may have at the same time; 0: any number
	Opened        func(change int) // called when a stream begins, with 1, and when it ends, with -1; nil: nothing is called
}

// Streams follow carts.
type Streams struct {
	Config
	carts              *service.Carts
	hub                *Hub
	ofCarts, ofClients *limit.Slots[string]
}

// New returns the Streams of carts.
func New(carts *service.Carts, c Config) *Streams {
	if c.Opened == nil {
		c.Opened = func(int) {}
	}
	return &Streams{
		Config: c, carts: carts, hub: NewHub(carts.Redis),
		ofCarts:   limit.NewSlots[string](limit.SlotsConfig{All: cmp.Or(c.Streams, MaxStreams), Each: cartStreams}),
		ofClients: limit.NewSlots[string](limit.SlotsConfig{Each: cmp.Or(c.ClientStreams, MaxStreams)}),
	}
}

func (s *Streams) enter(ctx context.Context, cart, client string) (leave func(), err error) {
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
	*Listener
	of    *Streams
	leave func()
}

// Listen follows the visit's cart. It merges nothing. The caller closes the stream. Errors:
// problem.Unauthenticated, problem.NotFound if nothing is stored, problem.Unavailable.
func (s *Streams) Listen(ctx context.Context, v *service.Visit) (*Stream, error) {
	if v.Fresh {
		return nil, errNoCredential
	}
	leave, err := s.enter(ctx, v.Ref().String(), v.Client())
	if err != nil {
		return nil, err
	}
	ctx, done := v.Within(ctx)
	defer done()
	l, err := s.hub.Listen(ctx, v.Ref())
	if err != nil {
		leave()
		if errors.Is(err, ErrNoCart) {
			err = errNoCart
		}
		return nil, err
	}
	s.Opened(1)
	return &Stream{l, s, leave}, nil
}

// MayListen returns the error of Listen for a visit that is ReadOnly, without listening, so it changes nothing in Redis.
func (s *Streams) MayListen(ctx context.Context, v *service.Visit) error {
	if v.Fresh {
		return errNoCredential
	}
	stored, err := s.carts.Load(ctx, v)
	if err == nil && stored.ID == "" {
		err = errNoCart
	}
	return err
}

func (s *Stream) Close() {
	s.Listener.Close()
	s.leave()
	s.of.Opened(-1)
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
