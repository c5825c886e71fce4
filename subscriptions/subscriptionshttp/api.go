// Package subscriptionshttp lets a store's programs read the subscriptions of its customers over
// HTTP: a list, newest or next renewal first, whose pages all cost the same, and single subscriptions.
// Other packages add calls of the same programs.
package subscriptionshttp

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart/wire"
	"commerce/subscriptions"
)

type Config struct {
	Source subscriptions.Source
	Tokens *auth.APITokens

	// Origin returns the URL in front of the path by which the client of a request
	// reaches the service, such as "https://shop.example.com".
	Origin func(*http.Request) string

	// Used is called with the ID of each API token that was accepted. nil: nothing is called.
	Used func(tokenID int64)

	// Stopping, if not nil, reports whether streams must end because the process stops.
	// Their clients continue at another instance.
	Stopping func() bool

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// MaxWaiting is how many calls of one instance wait at the same time, and MaxWaitingOfStore how many of one store. Each takes a
// connection of a client, and about 40 KB.
const MaxWaiting, MaxWaitingOfStore = 1000, 20

// API handles the HTTP calls of subscriptions.
type API struct {
	Config
	Places *limit.Slots[int64] // of calls that wait, by store
}

func New(c Config) *API {
	if c.Used == nil {
		c.Used = func(int64) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &API{c, NewPlaces()}
}

// NewPlaces returns the places of calls that wait in one instance.
func NewPlaces() *limit.Slots[int64] {
	return limit.NewSlots[int64](limit.SlotsConfig{All: MaxWaiting, Each: MaxWaitingOfStore})
}

// Calls are what another package adds to the list and the single subscription.
type Calls func(*API) []wire.Route

// Area has the routes of the API, and those of more calls.
func (a *API) Area(more ...Calls) wire.Area {
	routes := []wire.Route{
		{Method: http.MethodGet, Path: "/subscriptions", Handle: a.Serve(a.list)},
		{Method: http.MethodGet, Path: "/subscriptions/:id", Handle: a.Serve(a.get)},
	}
	for _, calls := range more {
		routes = append(routes, calls(a)...)
	}
	return wire.Area{Routes: routes, Vary: "Authorization, Accept-Language, Origin", Private: true}
}

// Merchant is the sender of a request: its store, and the language of the answer.
type Merchant struct {
	*gin.Context
	Store    *store.Store
	Language locale.Locale
}

// Subscription returns the ID in the path.
func (m *Merchant) Subscription() (int64, error) {
	id, ok := subscriptions.WholeNumber[int64](math.MaxInt64)(m.Param("id"))
	if !ok {
		return 0, subscriptions.ErrNotFound
	}
	return id, nil
}

// Serve identifies the store before a call.
func (a *API) Serve(handle func(*Merchant) (wire.Answer, error)) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		store, token, err := a.Tokens.Identify(c.Request, wire.Client(c))
		if err != nil {
			return wire.Answer{}, err
		}
		a.Used(token)
		m := &Merchant{c, store, locale.Match(c.GetHeader("Accept-Language"), store.Locale)}
		answer, err := handle(m)
		answer.Language, answer.Store, answer.Caller = m.Language, store.ID, wire.Merchant
		return answer, err
	}
}

func (a *API) list(m *Merchant) (wire.Answer, error) {
	asked, err := parseListing(m.Request.URL.RawQuery)
	if err != nil {
		return wire.Answer{}, err
	}
	p, q, key, err := a.question(m, &asked)
	if err != nil {
		return wire.Answer{}, err
	}
	q.Language = m.Language
	rows, err := a.Source.List(m.Request.Context(), m.Store.ID, q)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("list subscriptions of store %d: %w", m.Store.ID, err)
	}
	p.fill(rows, key, m.Store.ID)
	if err := CheckCurrencies(m.Store, p.rows); err != nil {
		return wire.Answer{}, err
	}
	path := a.Origin(m.Request) + m.FullPath()
	return wire.Answer{Data: func(w *wire.Writer) { writePage(w, a.View(m, w), &p, path) }}, nil
}

// question returns the page and what to ask the source for it, and the key that signs the links
// of the answer. If no known key signed the request's link, another instance may already use a
// newer key, so the keys are read again before the link is refused.
func (a *API) question(m *Merchant, asked *listing) (p page, q subscriptions.Query, key []byte, err error) {
	for _, fresh := range []bool{false, true} {
		keys, err := a.Source.LinkKeys(m.Request.Context(), fresh)
		if err != nil {
			return p, q, nil, fmt.Errorf("read the keys of page links: %w", err)
		}
		if p, q, ok := asked.ask(keys, m.Store.ID); ok {
			return p, q, keys[0], nil
		}
	}
	return p, q, nil, problem.New(problem.InvalidParameter, linkParameter, textLink)
}

func (a *API) get(m *Merchant) (wire.Answer, error) {
	id, err := m.Subscription()
	if err != nil {
		return wire.Answer{}, err
	}
	s, err := a.Source.Get(m.Request.Context(), m.Store.ID, id, m.Language)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("get subscription %d of store %d: %w", id, m.Store.ID, err)
	}
	if err := CheckCurrencies(m.Store, []subscriptions.Subscription{*s}); err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		a.View(m, w).Full(s)
		w.EndObject()
	}}, nil
}

// View returns a view that writes to w.
func (a *API) View(m *Merchant, w *wire.Writer) *View { return a.ViewTo(w, m, w) }

// ViewTo returns a view that writes to another format than JSON. w formats prices.
func (a *API) ViewTo(to Members, m *Merchant, w *wire.Writer) *View {
	return &View{to, w, m.Store, a.Now()}
}

// errStopping ends a stream. The client continues at another instance.
var errStopping = subscriptions.Unavailable(errors.New("the process is stopping"))

// MayContinue returns why a stream, or a call that waited, must end: the process stops, or the token was revoked.
func (a *API) MayContinue(m *Merchant) error {
	if a.Stopping != nil && a.Stopping() {
		return errStopping
	}
	_, _, err := a.Tokens.Identify(m.Request, wire.Client(m.Context))
	return err
}
