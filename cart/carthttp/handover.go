package carthttp

import (
	"cmp"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/service"
	"commerce/cart/wire"
)

// handOver answers with a code of the guest's cart. The request has no members, so its body is optional.
func (a *API) handOver(c *call) (wire.Answer, error) {
	a.carts.Merge(c.ctx(), c.Visit, "")
	if err := c.optionalBody(); err != nil {
		return wire.Answer{}, err
	}
	h, err := a.carts.HandOver(c.ctx(), c.Visit)
	return c.show(func(w view) { w.link(h) }), err
}

func (c *call) optionalBody() error {
	if c.Request.ContentLength == 0 {
		return nil
	}
	_, _, err := wire.ReadBody(c.Request)
	return err
}

// redeem shows the cart of a code, or moves it and answers with the cart where it is now.
func (a *API) redeem(c *call) (wire.Answer, error) {
	a.carts.Merge(c.ctx(), c.Visit, "")
	key, invalid := wire.IdempotencyKey(c.Request.Header)
	on, unreadable := conditionsOf(c.Request.Header)
	in, _, err := readInput(c.Context)
	if err := cmp.Or(err, invalid, unreadable); err != nil {
		return wire.Answer{}, err
	}
	r, preview, refusal := in.members.redemption()
	switch {
	case refusal != nil:
		return wire.Answer{}, refusal
	case preview:
		offered, changed, err := a.carts.PreviewHandover(c.ctx(), c.Visit, r.Code)
		return c.showOther(&offered, func(w view, p *cart.Priced) { w.preview(p, changed) }), err
	}
	r.Key, r.IfMatch = key, on.IfMatch
	sent := c.Token
	changed, err := a.carts.Redeem(c.ctx(), c.Visit, r)
	c.issuesToken = c.issuesToken || c.Token != sent
	return c.showChanged(changed, err)
}

// showOther shows a cart that is not the caller's, so it issues no token.
func (c *call) showOther(p *cart.Priced, write func(view, *cart.Priced)) wire.Answer {
	c.issuesToken = false
	return c.showAs(func(w view, p *cart.Priced, _ auth.CartToken, _ *cart.MergeReport) { write(w, p) }, p)
}

// preview writes the cart of a code, and whether it has changed since it was offered. Then it has no texts.
func (w view) preview(p *cart.Priced, changed bool) {
	w.textless = changed
	w.BeginObject()
	w.members(p, "", nil)
	w.rest(p)
	w.Bool("changed", changed)
	w.EndObject()
}

func (o object) redemption() (r service.Redemption, preview bool, _ *problem.Error) {
	code, badCode := o.asSent("code")
	preview, badPreview := o.flag("preview")
	keepAgent, badKeepAgent := o.flag("keep_agent")
	return service.Redemption{Code: code, KeepAgent: keepAgent}, preview, problem.Join(badCode, badPreview, badKeepAgent)
}

func (o object) flag(name string) (bool, *problem.Error) {
	if !o.has(name) {
		return false, nil
	}
	kind := o[name].Kind()
	if kind != 't' && kind != 'f' {
		return false, problem.New(problem.ValidationFailed, name, textFlag, name)
	}
	return kind == 't', nil
}

func (w view) link(l service.Link) {
	w.BeginObject()
	w.Text("code", l.Code)
	w.Time("expires_at", l.ExpiresAt, wire.RFC3339)
	w.Optional("url", l.URL)
	w.EndObject()
}

var textFlag = locale.Text{
	locale.En: "%s must be true or false.",
	locale.Ar: "يجب أن يكون %s إما true أو false.",
}
