package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
)

// Config is what an API works with.
type Config struct {
	Source Source
	Tokens *auth.APITokens
	Prices *money.Formatter

	// Name is the identifier that every answer carries as "api".
	Name string

	// Origin returns the URL in front of the path by which the client of a request
	// reaches the service, such as "https://shop.example.com". Default: what the
	// request says.
	Origin func(*http.Request) string

	// Used is told the id of each API token that was let in. Default: nobody is.
	Used func(tokenID int64)

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// API answers the subscriptions' HTTP calls. Its handlers decode, call the source
// once and return errors for the one place that writes them.
type API struct {
	source  Source
	tokens  *auth.APITokens
	prices  *money.Formatter
	name    string
	origin  func(*http.Request) string
	used    func(tokenID int64)
	now     func() time.Time
	buffers buffers
}

// NewAPI returns an API that works with c.
func NewAPI(c Config) *API {
	a := &API{
		source: c.Source, tokens: c.Tokens, prices: c.Prices, name: c.Name, origin: c.Origin, used: c.Used, now: c.Now,
	}
	if a.used == nil {
		a.used = func(int64) {}
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.origin == nil {
		a.origin = requestOrigin
	}
	return a
}

func requestOrigin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Routes lists every call by method and path.
func (a *API) Routes() map[string]func(*gin.Context) error {
	return map[string]func(*gin.Context) error{
		"GET /subscriptions":     a.serve(a.list),
		"GET /subscriptions/:id": a.serve(a.get),
	}
}

// visit is one call: which store makes it, and in which language it is answered.
type visit struct {
	*gin.Context
	store    *store.Store
	language locale.Locale
}

func (v *visit) ctx() context.Context { return v.Request.Context() }

func (a *API) serve(serve func(*visit) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		store, token, err := a.tokens.Identify(c.Request)
		if err != nil {
			return err
		}
		a.used(token)
		v := &visit{c, store, locale.Match(c.GetHeader("Accept-Language"), store.Locale)}
		return v.explain(serve(v))
	}
}

// explain completes an error with the language it is to be told in. What was being
// done when it came stays with it, for the log.
func (v *visit) explain(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	told := *e
	told.language = v.language
	if err != error(e) {
		told.cause = err
	}
	return &told
}

func (a *API) list(v *visit) error {
	asked, err := parseListing(v.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	q, key, err := a.question(v, &asked)
	if err != nil {
		return err
	}
	rows, err := a.source.List(v.ctx(), v.store.ID, q.Query)
	if err != nil {
		return fmt.Errorf("list subscriptions of store %d: %w", v.store.ID, err)
	}
	p := newPage(key, v.store.ID, asked, q, rows)
	a.send(v, func(w *wire) { w.page(&p, a.origin(v.Request)+v.FullPath()) })
	return nil
}

// question is what to ask the source, and the key for the links of the answer. A link
// that no known key signed may be of a key that another instance already knows, so
// the keys are read again before it is refused.
func (a *API) question(v *visit, asked *listing) (q question, key []byte, err error) {
	for _, fresh := range []bool{false, true} {
		keys, err := a.source.LinkKeys(v.ctx(), fresh)
		if err != nil {
			return question{}, nil, fmt.Errorf("read the keys of page links: %w", err)
		}
		if q, ok := asked.ask(keys, v.store.ID); ok {
			return q, keys[0], nil
		}
	}
	return question{}, nil, refuse(fault{linkParameter, textLink})
}

func (a *API) get(v *visit) error {
	id, err := strconv.ParseInt(v.Param("id"), 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != v.Param("id") {
		return notFound()
	}
	s, err := a.source.Get(v.ctx(), v.store.ID, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return notFound()
	case err != nil:
		return fmt.Errorf("get subscription %d of store %d: %w", id, v.store.ID, err)
	}
	a.send(v, func(w *wire) { w.full(s) })
	return nil
}

// send writes the envelope around data.
func (a *API) send(v *visit, data func(*wire)) {
	now := a.now()
	digits, _ := money.Digits(v.store.Currency)
	w := &wire{b: a.buffers.get(), language: v.language, digits: digits, prices: a.prices, now: now}
	w.raw(`{"message":null,"data":`)
	data(w)
	w.text("api", a.name)
	w.number("timestamp", now.Unix())
	w.raw("}")
	defer func() { a.buffers.put(w.b) }()

	v.Header("Cache-Control", "private, no-cache")
	v.Writer.Header().Add("Vary", "Authorization, Accept-Language, Origin")
	v.Header("Content-Length", strconv.Itoa(len(w.b)))
	v.Data(http.StatusOK, "application/json; charset=utf-8", w.b)
}
