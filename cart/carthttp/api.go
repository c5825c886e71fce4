// Package carthttp serves the cart over HTTP: it has the routes, decodes requests, and
// writes the data of responses. The server adds envelopes, errors and ETags.
package carthttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/service"
	"commerce/cart/wire"
)

// API handles the cart's HTTP calls.
type API struct {
	callers  *auth.CartCallers
	carts    *service.Carts
	basePath string
	origin   func(*http.Request) string
	country  func(*http.Request) string
	parts    *partsCache

	// What packages beside the core add: see Handle and HandleOp.
	added []wire.Route
	loads map[string]Load
}

// New returns an API. basePath is the prefix of its routes' paths, "" for none. A retry under another
// prefix is a replay. origin returns the URL in front of basePath by which the client of a request
// reaches the service, such as "https://shop.example.com". country returns the country that a request comes from, "" if
// that is not known.
func New(callers *auth.CartCallers, carts *service.Carts, basePath string, origin, country func(*http.Request) string) *API {
	return &API{callers: callers, carts: carts, basePath: basePath, origin: origin, country: country, parts: newPartsCache(), loads: map[string]Load{}}
}

// Area lists every cart call, with those that were added.
func (a *API) Area() wire.Area {
	return wire.Area{
		Success: true,
		Vary:    "Authorization, X-Cart-Token, X-Public-Key, Accept-Language, Origin",
		Routes: append([]wire.Route{
			{Method: "GET", Path: "/cart", Handle: a.serve(a.read(view.cart))},
			{Method: "GET", Path: "/cart/count", Handle: a.serve(a.count)},
			{Method: "GET", Path: "/cart/validate", Handle: a.serve(a.validate)},
			{Method: "GET", Path: "/cart/summary", Handle: a.serve(a.read(view.summary))},
			{Method: "POST", Path: "/cart/add", Handle: serveChange(a, input.addition, a.carts.Add)},
			{Method: "PATCH", Path: "/cart/items/:item_id", Handle: serveChange(a, input.edit, a.carts.Edit)},
			{Method: "DELETE", Path: "/cart/items/:item_id", Handle: serveChange(a, input.removal, a.carts.Do)},
			{Method: "POST", Path: "/cart/ops", Handle: serveChange(a, input.list, a.carts.Ops)},
			{Method: "DELETE", Path: "/cart/clear", Handle: serveChange(a, input.clearing, a.carts.Do)},
			{Method: "POST", Path: couponPath, Handle: serveChange(a, input.couponCode, a.carts.RedeemCoupon)},
			{Method: "DELETE", Path: couponPath, Handle: serveChange(a, input.withoutCoupon, a.carts.Do)},
		}, a.added...),
	}
}

const couponPath = "/cart/coupon"

// Call is one call of the cart.
type Call struct {
	*gin.Context
	*service.Visit
	api         *API
	language    locale.Locale
	issuesToken bool // the answer gives a new guest cart's token to the client
}

func (c *Call) Ctx() context.Context { return c.Request.Context() }

// token is the cart's token in the answer: "" for a new one that it does not issue.
func (c *Call) token() auth.CartToken {
	if c.Fresh && !c.issuesToken {
		return ""
	}
	return c.Token
}

// serve identifies the caller, calls handle, and adds the language and a new cart token.
func (a *API) serve(handle func(*Call) (wire.Answer, error)) wire.Handler {
	return func(g *gin.Context) (wire.Answer, error) {
		caller, err := a.callers.Identify(g.Request, wire.Client(g))
		if err != nil {
			return wire.Answer{}, err
		}
		visit, err := a.carts.Visit(caller)
		if err != nil {
			return wire.Answer{}, err
		}
		visit.ReadOnly = wire.MethodOf(g.Request) == http.MethodHead
		visit.Country = a.country(g.Request)
		c := &Call{
			Context: g, Visit: visit, api: a, issuesToken: visit.Fresh,
			language: locale.Match(g.GetHeader("Accept-Language"), caller.Store.Locale),
		}
		sent := c.Token
		answer, err := handle(c)
		c.issuesToken = c.issuesToken || c.Token != sent
		if err != nil {
			answer = a.errorAnswer(c, err)
		} else if c.issuesToken {
			c.Header("X-Cart-Token", c.Token.Reveal())
		}
		answer.Language, answer.Store, answer.Caller = c.language, caller.Store.ID, wire.Guest
		if caller.Customer != "" {
			answer.Caller = wire.Customer
		}
		return answer, err
	}
}

// errorAnswer returns the answer that goes with an error. An error never issues a token.
func (a *API) errorAnswer(c *Call, err error) wire.Answer {
	c.issuesToken = false
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return wire.Answer{}
	}
	if e.Code != problem.Unavailable && e.Code != problem.OutcomeUnknown {
		a.carts.Recall(c.Ctx(), c.Visit)
	}
	switch data := e.Data.(type) {
	case *price.Priced:
		return c.showAs(view.cart, data)
	case *price.Validation:
		return c.show(func(w view) { w.validation(data, c.Merge()) })
	}
	reason, _ := e.Data.(price.CouponReason)
	var op *int64
	if fault, ok := e.Data.(service.OpFault); ok {
		op, reason = new(int64(fault.Op)), fault.Reason
	}
	if op == nil && reason == "" && c.Merge() == nil {
		return wire.Answer{}
	}
	return c.show(func(w view) { w.refusal(op, reason, c.Merge()) })
}

// serveChange handles a call that changes the cart. A waiting guest's cart is merged before the
// request is decoded, so that a refused change merges too.
func serveChange[T any](
	a *API,
	decode func(input) (T, *problem.Error),
	change func(context.Context, *service.Visit, service.Conditions, T) (service.Changed, error),
) wire.Handler {
	return a.serve(func(c *Call) (wire.Answer, error) {
		on, invalid := conditionsOf(c.Request.Header)
		a.carts.Merge(c.Ctx(), c.Visit, on.Key)
		in, content, err := readInput(c.Context, a.basePath)
		if err := cmp.Or(err, invalid); err != nil {
			return wire.Answer{}, err
		}
		identify(&on, c.Request, a.basePath, content)
		in.lineText, in.loads = a.carts.Limits.LineText, a.loads
		wanted, refusal := decode(in)
		if refusal != nil {
			changed, err := a.carts.Refuse(c.Ctx(), c.Visit, on, refusal)
			return c.ShowChanged(changed, err, nil)
		}
		changed, err := change(c.Ctx(), c.Visit, on, wanted)
		return c.ShowChanged(changed, err, nil)
	})
}

// conditionsOf reads the headers that decide whether a change is made: Idempotency-Key and
// If-Match. With the error of an invalid If-Match, the key is valid.
func conditionsOf(h http.Header) (service.Conditions, error) {
	var on service.Conditions
	key, err := wire.IdempotencyKey(h)
	if err != nil {
		return on, err
	}
	if key != "" {
		on.Key = wire.Digest(key) // it replaces the client's key in Redis
	}
	ifMatch, err := wire.ParseTags(h, "If-Match")
	on.IfMatch = ifMatch.Versions()
	return on, err
}

// identify adds what a repeat of a change has in common with it: the fingerprint for its key, or
// without a key the stamp for its X-Timestamp.
func identify(on *service.Conditions, r *http.Request, basePath string, content []byte) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), basePath) // escaped as the client sent it
	if on.Key != "" {
		on.Fingerprint = wire.Digest(r.Method, path, string(content))
	} else if stamp := r.Header.Get("X-Timestamp"); stamp != "" {
		on.Stamp = wire.Digest(r.Method, path, string(content), stamp)[:cart.StampSize]
	}
}

// read answers with the cart, in the form that write gives it. An invalid If-None-Match is
// refused after the merge, like every refusal.
func (a *API) read(write form) func(*Call) (wire.Answer, error) {
	remembered := newTagCache()
	return func(c *Call) (wire.Answer, error) {
		unpriced, err := a.carts.Look(c.Ctx(), c.Visit)
		if err != nil {
			return wire.Answer{}, err
		}
		known, invalid := wire.ParseTags(c.Request.Header, "If-None-Match")
		known.Any = known.Any && c.Merge() == nil // "*" does not say that the client has the report
		key, lasting := tagKeyOf(&unpriced.Cart, c.token(), c.Store, c.language, c.Merge(), len(unpriced.Automatic) > 0)
		lasting = lasting && len(known.List) > 0
		if lasting {
			if tag, ok := tagOf(remembered, key, unpriced.Products); ok {
				if held, ok := known.Find(tag); ok {
					return wire.Answer{Unchanged: held}, nil
				}
			}
		}
		priced, err := a.carts.Price(c.Ctx(), c.Visit, unpriced)
		if err != nil {
			return wire.Answer{}, err
		}
		answer := c.showAs(write, &priced)
		answer.Known = known
		if lasting {
			answer = remembering(remembered, key, unpriced.Products, answer)
		}
		return answer, invalid
	}
}

func (a *API) count(c *Call) (wire.Answer, error) {
	quantity, lines, err := a.carts.Count(c.Ctx(), c.Visit)
	return c.show(func(w view) { w.count(quantity, lines, c.token(), c.Merge()) }), err
}

func (a *API) validate(c *Call) (wire.Answer, error) {
	validation, err := a.carts.Validate(c.Ctx(), c.Visit)
	if err == nil && !validation.Valid() {
		err = problem.New(problem.CartInvalid, "", textCartInvalid).WithData(&validation)
	}
	c.issuesToken = false
	return c.show(func(w view) { w.validation(&validation, c.Merge()) }), err
}

type form func(view, *price.Priced, auth.CartToken, *cart.MergeReport)

func (c *Call) showAs(write form, p *price.Priced) wire.Answer {
	return wire.Answer{
		Version: p.Cart.Tag(),
		Data: func(w *wire.Writer) {
			write(newView(w, c.Store, c.api.origin(c.Request), c.api.basePath, c.api.parts), p, c.token(), c.Merge())
		},
	}
}

func (c *Call) show(write func(view)) wire.Answer {
	return wire.Answer{Data: func(w *wire.Writer) { write(newView(w, c.Store, "", "", nil)) }}
}

var textCartInvalid = locale.Text{
	locale.En: "You cannot check out yet. Please review your cart.",
	locale.Ar: "لا يمكن إتمام الشراء بعد. يُرجى مراجعة سلتك.",
}
