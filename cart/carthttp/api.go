// Package carthttp serves the cart over HTTP: it has the routes, decodes requests, and
// writes the data of responses. The server adds envelopes, errors and ETags.
package carthttp

import (
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
}

// New returns an API. basePath is the prefix of its routes' paths, "" for none. It is
// ignored when two requests are compared, so a retry under another prefix is a replay.
func New(callers *auth.CartCallers, carts *service.Carts, basePath string) *API {
	return &API{callers, carts, basePath}
}

// Area lists every cart call.
func (a *API) Area() wire.Area {
	return wire.Area{
		Success: true,
		Vary:    "Authorization, X-Cart-Token, X-Public-Key, Accept-Language, Origin",
		Routes: []wire.Route{
			{Method: "GET", Path: "/cart", Handle: a.serve(a.cart)},
			{Method: "GET", Path: "/cart/count", Handle: a.serve(a.count)},
			{Method: "GET", Path: "/cart/validate", Handle: a.serve(a.validate)},
			{Method: "GET", Path: "/cart/summary", Handle: a.serve(a.summary)},
			{Method: "POST", Path: "/cart/add", Handle: change(a, request.addition, a.carts.Add)},
			{Method: "PATCH", Path: "/cart/items/:item_id", Handle: change(a, request.edit, a.carts.Edit)},
			{Method: "DELETE", Path: "/cart/items/:item_id", Handle: change(a, request.lineID, a.carts.Remove)},
			{Method: "DELETE", Path: "/cart/clear", Handle: change(a, request.nothing, plain(a.carts.Clear))},
			{Method: "POST", Path: "/cart/coupon", Handle: change(a, request.couponCode, a.carts.RedeemCoupon)},
			{Method: "DELETE", Path: "/cart/coupon", Handle: change(a, request.nothing, plain(a.carts.DropCoupon))},
		},
	}
}

// visit is one call, with the language of its response.
type visit struct {
	*gin.Context
	*service.Visit
	language    locale.Locale
	issuesToken bool // the answer gives a new guest cart's token to the client
}

func (v *visit) ctx() context.Context { return v.Request.Context() }

// token is what the answer shows as the cart's token: "" for a new one that this answer
// does not issue.
func (v *visit) token() auth.CartToken {
	if v.Fresh && !v.issuesToken {
		return ""
	}
	return v.Token
}

// serve identifies the caller, calls handle, and adds the language and a new cart token
// to the answer.
func (a *API) serve(handle func(*visit) (wire.Answer, error)) wire.Handler {
	return func(c *gin.Context) (wire.Answer, error) {
		caller, err := a.callers.Identify(c.Request, wire.Client(c))
		if err != nil {
			return wire.Answer{}, err
		}
		opened, err := a.carts.Visit(caller)
		if err != nil {
			return wire.Answer{}, err
		}
		opened.Peeks = wire.MethodOf(c.Request) == http.MethodHead
		v := &visit{
			Context: c, Visit: opened, issuesToken: opened.Fresh,
			language: locale.Match(c.GetHeader("Accept-Language"), caller.Store.Locale),
		}
		answer, err := handle(v)
		if err != nil {
			answer = a.beside(v, err)
		} else if v.issuesToken {
			v.Header("X-Cart-Token", v.Token.Reveal())
		}
		answer.Language = v.language
		answer.Store, answer.Caller = caller.Store.ID, kindOf(caller)
		return answer, err
	}
}

func kindOf(c auth.Caller) wire.Caller {
	if c.Customer == "" {
		return wire.Guest
	}
	return wire.Customer
}

// beside returns the answer that goes with an error. An error never issues a token.
func (a *API) beside(v *visit, err error) wire.Answer {
	v.issuesToken = false
	e, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return wire.Answer{}
	}
	if e.Code != problem.Unavailable && e.Code != problem.OutcomeUnknown {
		a.carts.Recall(v.ctx(), v.Visit)
	}
	switch data := e.Data.(type) {
	case *cart.Priced:
		return v.showCart(data)
	case *cart.Validation:
		return v.show(func(w view) { w.validation(data, v.Merge()) })
	case cart.CouponReason:
		return v.show(func(w view) { w.couponRefusal(data, v.Merge()) })
	}
	if v.Merge() == nil {
		return wire.Answer{}
	}
	return v.show(func(w view) { w.mergeAlone(v.Merge()) })
}

// change handles a call that changes the cart: decode, make the change, show the cart. A
// waiting guest's cart is merged before the request is decoded, so that a refused change
// merges too.
func change[T any](
	a *API,
	decode func(request) (T, *problem.Error),
	call func(context.Context, *service.Visit, service.Conditions, T) (service.Changed, error),
) wire.Handler {
	return a.serve(func(v *visit) (wire.Answer, error) {
		key, _ := keyDigest(v.Request.Header) // readRequest refuses an invalid key
		a.carts.Merge(v.ctx(), v.Visit, key)
		r, err := readRequest(v.Context, a.basePath)
		if err != nil {
			return wire.Answer{}, err
		}
		r.lineText = a.carts.LineText()
		wanted, refusal := decode(r)
		if refusal != nil {
			return v.showChanged(a.carts.Refuse(v.ctx(), v.Visit, r.on, refusal))
		}
		return v.showChanged(call(v.ctx(), v.Visit, r.on, wanted))
	})
}

// plain adapts a change that needs nothing but the cart.
func plain(
	call func(context.Context, *service.Visit, service.Conditions) (service.Changed, error),
) func(context.Context, *service.Visit, service.Conditions, struct{}) (service.Changed, error) {
	return func(ctx context.Context, v *service.Visit, on service.Conditions, _ struct{}) (service.Changed, error) {
		return call(ctx, v, on)
	}
}

// showChanged shows the cart after a change.
func (v *visit) showChanged(c service.Changed, err error) (wire.Answer, error) {
	if err != nil {
		return wire.Answer{}, err
	}
	if c.Durability != "" {
		v.Header("Durability", c.Durability)
	}
	if c.Replayed {
		v.Header("Idempotency-Replayed", "true")
	}
	return v.showAs(func(w view, p *cart.Priced, token auth.CartToken, m *cart.MergeReport) {
		w.changedCart(p, token, c.Item, m)
	}, &c.Priced), nil
}

func (a *API) cart(v *visit) (wire.Answer, error) {
	return a.read(v, view.cart)
}

func (a *API) summary(v *visit) (wire.Answer, error) {
	return a.read(v, view.summary)
}

// read answers with the cart, in the form that write gives it. An invalid If-None-Match is
// refused after the merge, like every refusal.
func (a *API) read(v *visit, write form) (wire.Answer, error) {
	priced, err := a.carts.Read(v.ctx(), v.Visit)
	if err != nil {
		return wire.Answer{}, err
	}
	known, err := wire.ParseTags(v.Request.Header, "If-None-Match")
	known.Any = known.Any && v.Merge() == nil // "*" does not say that the client has the report
	answer := v.showAs(write, &priced)
	answer.Known = known
	return answer, err
}

func (a *API) count(v *visit) (wire.Answer, error) {
	quantity, lines, err := a.carts.Count(v.ctx(), v.Visit)
	return v.show(func(w view) { w.count(quantity, lines, v.token(), v.Merge()) }), err
}

func (a *API) validate(v *visit) (wire.Answer, error) {
	validation, err := a.carts.Validate(v.ctx(), v.Visit)
	if err == nil && !validation.Valid() {
		err = problem.New(problem.CartInvalid, "", textCartInvalid).WithData(&validation)
	}
	v.issuesToken = false
	return v.show(func(w view) { w.validation(&validation, v.Merge()) }), err
}

// form is how an answer shows the whole cart.
type form func(view, *cart.Priced, auth.CartToken, *cart.MergeReport)

// showCart shows the whole cart.
func (v *visit) showCart(p *cart.Priced) wire.Answer { return v.showAs(view.cart, p) }

func (v *visit) showAs(write form, p *cart.Priced) wire.Answer {
	return wire.Answer{
		Version: p.Cart.Tag(),
		Data:    func(w *wire.Writer) { write(newView(w, v.Store), p, v.token(), v.Merge()) },
	}
}

// show returns an answer whose data is written by write.
func (v *visit) show(write func(view)) wire.Answer {
	return wire.Answer{Data: func(w *wire.Writer) { write(newView(w, v.Store)) }}
}

var textCartInvalid = locale.Text{
	locale.En: "You cannot check out yet. Please review your cart.",
	locale.Ar: "لا يمكن إتمام الشراء بعد. يُرجى مراجعة سلتك.",
}
