// Package subscriptionshttp lets a store's programs read the subscriptions of its customers over
// HTTP: a list, newest or next renewal first, whose pages all cost the same, single subscriptions
// and their histories, a summary, monthly figures, and the changes since a cursor.
package subscriptionshttp

import (
	"fmt"
	"math"
	"net/http"
	"strings"
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

	// Fresh makes summaries and metrics for each call, as a source in memory can afford.
	Fresh bool

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// maxStreams is how many streams of changes one instance sends at the same time. They share the
// connections with other requests. Each holds two pages of 1,000 changes, which is 2 MB, or 34 MB
// if all subscriptions have the largest metadata.
const maxStreams, maxStreamsOfStore = 8, 2

// API handles the HTTP calls of subscriptions.
type API struct {
	Config
	streams   *limit.Slots[int64] // of changes, by store
	summaries *runs[*subscriptions.Summary]
	measured  *runs[*subscriptions.Metrics]
	waiter    *Waiter // for changes
}

func New(c Config) *API {
	if c.Used == nil {
		c.Used = func(int64) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	a := &API{
		Config:    c,
		streams:   limit.NewSlots[int64](limit.SlotsConfig{All: maxStreams, Each: maxStreamsOfStore}),
		summaries: newSummaries(c.Source, c.Now),
		measured:  newMetrics(c.Source, c.Now),
		waiter:    NewWaiter(c.Source),
	}
	if c.Fresh {
		a.summaries.usable = func(*subscriptions.Summary) bool { return false }
		a.measured.usable = func(*subscriptions.Metrics) bool { return false }
	}
	return a
}

func (a *API) Area() wire.Area {
	return wire.Area{
		Routes: []wire.Route{
			{Method: http.MethodGet, Path: "/subscriptions", Handle: a.serve(a.list)},
			{Method: http.MethodGet, Path: "/subscriptions/changes", Handle: a.serve(a.changes), Vary: "Accept"},
			{Method: http.MethodGet, Path: "/subscriptions/summary", Handle: a.serve(a.summary)},
			{Method: http.MethodGet, Path: "/subscriptions/metrics", Handle: a.serve(a.metrics), Vary: "Accept"},
			{Method: http.MethodGet, Path: "/subscriptions/:id", Handle: a.serve(a.get)},
			{Method: http.MethodGet, Path: "/subscriptions/:id/history", Handle: a.serve(a.history)},
		},
		Vary:    "Authorization, Accept-Language, Origin",
		Private: true,
	}
}

// merchant is the sender of a request: its store, and the language of the answer.
type merchant struct {
	*gin.Context
	store    *store.Store
	language locale.Locale
}

func (m *merchant) accept() string { return strings.Join(m.Request.Header.Values("Accept"), ",") }

// subscription returns the ID in the path.
func (m *merchant) subscription() (int64, error) {
	id, ok := subscriptions.WholeNumber[int64](math.MaxInt64)(m.Param("id"))
	if !ok {
		return 0, subscriptions.ErrNotFound
	}
	return id, nil
}

// serve identifies the store before a call.
func (a *API) serve(handle func(*merchant) (wire.Answer, error)) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		store, token, err := a.Tokens.Identify(c.Request, wire.Client(c))
		if err != nil {
			return wire.Answer{}, err
		}
		a.Used(token)
		m := &merchant{c, store, locale.Match(c.GetHeader("Accept-Language"), store.Locale)}
		answer, err := handle(m)
		answer.Language, answer.Store, answer.Caller = m.language, store.ID, wire.Merchant
		return answer, err
	}
}

func (a *API) list(m *merchant) (wire.Answer, error) {
	asked, err := parseListing(m.Request.URL.RawQuery)
	if err != nil {
		return wire.Answer{}, err
	}
	p, q, key, err := a.question(m, &asked)
	if err != nil {
		return wire.Answer{}, err
	}
	q.Language = m.language
	rows, err := a.Source.List(m.Request.Context(), m.store.ID, q)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("list subscriptions of store %d: %w", m.store.ID, err)
	}
	p.fill(rows, key, m.store.ID)
	if err := checkCurrencies(m.store, p.rows); err != nil {
		return wire.Answer{}, err
	}
	path := a.Origin(m.Request) + m.FullPath()
	return wire.Answer{Data: func(w *wire.Writer) { writePage(w, a.view(m, w), &p, path) }}, nil
}

// question returns the page and what to ask the source for it, and the key that signs the links
// of the answer. If no known key signed the request's link, another instance may already use a
// newer key, so the keys are read again before the link is refused.
func (a *API) question(m *merchant, asked *listing) (p page, q subscriptions.Query, key []byte, err error) {
	for _, fresh := range []bool{false, true} {
		keys, err := a.Source.LinkKeys(m.Request.Context(), fresh)
		if err != nil {
			return p, q, nil, fmt.Errorf("read the keys of page links: %w", err)
		}
		if p, q, ok := asked.ask(keys, m.store.ID); ok {
			return p, q, keys[0], nil
		}
	}
	return p, q, nil, problem.New(problem.InvalidParameter, linkParameter, textLink)
}

func (a *API) get(m *merchant) (wire.Answer, error) {
	id, err := m.subscription()
	if err != nil {
		return wire.Answer{}, err
	}
	s, err := a.Source.Get(m.Request.Context(), m.store.ID, id, m.language)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("get subscription %d of store %d: %w", id, m.store.ID, err)
	}
	if err := checkCurrencies(m.store, []subscriptions.Subscription{*s}); err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{Data: func(w *wire.Writer) {
		w.BeginObject()
		a.view(m, w).full(s)
		w.EndObject()
	}}, nil
}

func (a *API) view(m *merchant, w *wire.Writer) *view { return &view{w, w, m.store, a.Now()} }
