// Package carthttp serves the cart over HTTP: it has the routes, decodes requests, and
// writes the data of responses. The server adds envelopes, errors and ETags.
package carthttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/service"
	"commerce/cart/wire"
)

// API handles the cart's HTTP calls.
type API struct {
	callers  *auth.CartCallers
	carts    *service.Carts
	basePath string
	origin   func(*http.Request) string
	parts    *partsCache
}

// New returns an API. basePath is the prefix of its routes' paths, "" for none. A retry under another
// prefix is a replay. origin returns the URL in front of basePath by which the client of a request
// reaches the service, such as "https://shop.example.com".
func New(callers *auth.CartCallers, carts *service.Carts, basePath string, origin func(*http.Request) string) *API {
	return &API{callers, carts, basePath, origin, newPartsCache()}
}

// Area lists every cart call. Without a key for codes, the calls that hand over, share and undo are absent.
func (a *API) Area() wire.Area {
	area := wire.Area{
		Success: true,
		Vary:    "Authorization, X-Cart-Token, X-Public-Key, Accept-Language, Origin",
		Routes: []wire.Route{
			{Method: "GET", Path: "/cart", Handle: a.serve(a.read(view.cart))},
			{Method: "GET", Path: "/cart/count", Handle: a.serve(a.count)},
			{Method: "GET", Path: "/cart/validate", Handle: a.serve(a.validate)},
			{Method: "GET", Path: "/cart/summary", Handle: a.serve(a.read(view.summary))},
			{Method: "GET", Path: "/cart/events", Handle: a.serve(a.events)},
			{Method: "POST", Path: "/cart/add", Handle: serveChange(a, input.addition, a.carts.Add)},
			{Method: "PATCH", Path: "/cart/items/:item_id", Handle: serveChange(a, input.edit, a.carts.Edit)},
			{Method: "DELETE", Path: "/cart/items/:item_id", Handle: serveChange(a, input.removal, a.carts.Do)},
			{Method: "POST", Path: "/cart/ops", Handle: serveChange(a, input.list, a.carts.Ops)},
			{Method: "DELETE", Path: "/cart/clear", Handle: serveChange(a, input.clearing, a.carts.Do)},
			{Method: "POST", Path: "/cart/coupon", Handle: serveChange(a, input.couponCode, a.carts.RedeemCoupon)},
			{Method: "DELETE", Path: "/cart/coupon", Handle: serveChange(a, input.withoutCoupon, a.carts.Do)},
		},
	}
	if a.carts.Keys != nil {
		area.Routes = append(area.Routes,
			wire.Route{Method: "POST", Path: "/cart/handover", Handle: a.serve(a.handOver)},
			wire.Route{Method: "POST", Path: "/cart/handover/redeem", Handle: a.serve(a.redeem)},
			wire.Route{Method: "POST", Path: "/cart/merge/undo", Handle: a.serve(a.undoMerge)},
			wire.Route{Method: "POST", Path: "/cart/share", Handle: a.serve(a.share)},
			wire.Route{Method: "GET", Path: "/cart/share/:code", Handle: a.serve(a.shared)},
			wire.Route{Method: "DELETE", Path: "/cart/share/:code", Handle: a.serve(a.unshare)})
	}
	return area
}

type call struct {
	*gin.Context
	*service.Visit
	api         *API
	language    locale.Locale
	issuesToken bool // the answer gives a new guest cart's token to the client
}

func (c *call) ctx() context.Context { return c.Request.Context() }

// token is the cart's token in the answer: "" for a new one that it does not issue.
func (c *call) token() auth.CartToken {
	if c.Fresh && !c.issuesToken {
		return ""
	}
	return c.Token
}

// serve identifies the caller, calls handle, and adds the language and a new cart token.
func (a *API) serve(handle func(*call) (wire.Answer, error)) wire.Handler {
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
		c := &call{
			Context: g, Visit: visit, api: a, issuesToken: visit.Fresh,
			language: locale.Match(g.GetHeader("Accept-Language"), caller.Store.Locale),
		}
		answer, err := handle(c)
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
func (a *API) errorAnswer(c *call, err error) wire.Answer {
	c.issuesToken = false
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return wire.Answer{}
	}
	if e.Code != problem.Unavailable && e.Code != problem.OutcomeUnknown {
		a.carts.Recall(c.ctx(), c.Visit)
	}
	switch data := e.Data.(type) {
	case *cart.Priced:
		return c.showAs(view.cart, data)
	case *cart.Validation:
		return c.show(func(w view) { w.validation(data, c.Merge()) })
	}
	reason, _ := e.Data.(cart.CouponReason)
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
	return a.serve(func(c *call) (wire.Answer, error) {
		on, invalid := conditionsOf(c.Request.Header)
		a.carts.Merge(c.ctx(), c.Visit, on.Key)
		in, body, err := readInput(c.Context)
		if err := cmp.Or(err, invalid); err != nil {
			return wire.Answer{}, err
		}
		identify(&on, c.Request, a.basePath, body)
		in.lineText = a.carts.Limits.LineText
		wanted, refusal := decode(in)
		if refusal != nil {
			return c.showChanged(a.carts.Refuse(c.ctx(), c.Visit, on, refusal))
		}
		return c.showChanged(change(c.ctx(), c.Visit, on, wanted))
	})
}

func (c *call) showChanged(changed service.Changed, err error) (wire.Answer, error) {
	if err != nil {
		return wire.Answer{}, err
	}
	if changed.Durability != "" {
		c.Header("Durability", changed.Durability)
	}
	if changed.Replayed {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.showAs(func(w view, p *cart.Priced, token auth.CartToken, m *cart.MergeReport) {
		w.changedCart(p, token, &changed, m)
	}, &changed.Priced), nil
}

// read answers with the cart, in the form that write gives it. An invalid If-None-Match is
// refused after the merge, like every refusal.
func (a *API) read(write form) func(*call) (wire.Answer, error) {
	remembered := newTagCache()
	return func(c *call) (wire.Answer, error) {
		unpriced, err := a.carts.Look(c.ctx(), c.Visit)
		if err != nil {
			return wire.Answer{}, err
		}
		known, invalid := wire.ParseTags(c.Request.Header, "If-None-Match")
		known.Any = known.Any && c.Merge() == nil // "*" does not say that the client has the report
		key, lasting := tagKeyOf(&unpriced.Cart, c.token(), c.Store, c.language, c.Merge())
		lasting = lasting && len(known.List) > 0
		if lasting {
			if tag, ok := tagOf(remembered, key, unpriced.Products); ok {
				if held, ok := known.Find(tag); ok {
					return wire.Answer{Unchanged: held}, nil
				}
			}
		}
		priced, err := a.carts.Price(c.ctx(), c.Visit, unpriced)
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

func (a *API) count(c *call) (wire.Answer, error) {
	quantity, lines, err := a.carts.Count(c.ctx(), c.Visit)
	return c.show(func(w view) { w.count(quantity, lines, c.token(), c.Merge()) }), err
}

func (a *API) validate(c *call) (wire.Answer, error) {
	validation, err := a.carts.Validate(c.ctx(), c.Visit)
	if err == nil && !validation.Valid() {
		err = problem.New(problem.CartInvalid, "", textCartInvalid).WithData(&validation)
	}
	c.issuesToken = false
	return c.show(func(w view) { w.validation(&validation, c.Merge()) }), err
}

type form func(view, *cart.Priced, auth.CartToken, *cart.MergeReport)

func (c *call) showAs(write form, p *cart.Priced) wire.Answer {
	return wire.Answer{
		Version: p.Cart.Tag(),
		Data: func(w *wire.Writer) {
			write(newView(w, c.Store, c.api.origin(c.Request), c.api.basePath, c.api.parts), p, c.token(), c.Merge())
		},
	}
}

func (c *call) show(write func(view)) wire.Answer {
	return wire.Answer{Data: func(w *wire.Writer) { write(newView(w, c.Store, "", "", nil)) }}
}

var textCartInvalid = locale.Text{
	locale.En: "You cannot check out yet. Please review your cart.",
	locale.Ar: "لا يمكن إتمام الشراء بعد. يُرجى مراجعة سلتك.",
}
