package carthttp

import (
	"cmp"
	"context"

	"commerce/auth"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/service"
	"commerce/cart/wire"
)

// What packages beside the core need for the calls that they add.

// Handle adds a call. An answer that is no error and has no cart of the caller's comes from Call.Show.
func (a *API) Handle(method, path string, handle func(*Call) (wire.Answer, error)) {
	a.added = append(a.added, wire.Route{Method: method, Path: path, Handle: a.serve(handle)})
}

// Load returns what an operation of a list adds, by the code that the operation has. See service.Op.
type Load func(ctx context.Context, v *service.Visit, code string) ([]cart.Addition, error)

// HandleOp adds an operation of POST /cart/ops, which must be alone in its list.
func (a *API) HandleOp(name string, load Load) { a.loads[name] = load }

// OptionalBody checks the body of a request that has no members.
func (c *Call) OptionalBody() error {
	if c.Request.ContentLength == 0 {
		return nil
	}
	_, _, err := wire.ReadBody(c.Request)
	return err
}

// ReadChange merges a waiting guest's cart, and reads the request of a change.
func (c *Call) ReadChange() (service.Conditions, wire.Object, error) {
	on, invalid := conditionsOf(c.Request.Header)
	c.api.carts.Merge(c.Ctx(), c.Visit, "")
	_, members, err := wire.ReadBody(c.Request)
	return on, members, cmp.Or(err, invalid)
}

// Text reads a member that is a text which this service has made.
func Text(members wire.Object, name string) (string, *problem.Error) {
	return object(members).asSent(name)
}

// ShowChanged answers with the changed cart, and with the members that more writes; nil for none.
func (c *Call) ShowChanged(changed service.Changed, err error, more func(*wire.Writer)) (wire.Answer, error) {
	if err != nil {
		return wire.Answer{}, err
	}
	if changed.Durability != "" {
		c.Header("Durability", changed.Durability)
	}
	if changed.Replayed {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.showAs(func(w view, p *price.Priced, token auth.CartToken, m *cart.MergeReport) {
		w.changedCart(p, token, &changed, m, more)
	}, &changed.Priced), nil
}

// Show answers with other data than a cart, which write writes, and issues no token.
func (c *Call) Show(write func(*wire.Writer)) wire.Answer {
	c.issuesToken = false
	return wire.Answer{Data: write}
}

// ShowCopy shows a cart that is not the caller's, so it issues no token.
func (c *Call) ShowCopy(p *price.Priced) wire.Answer {
	return c.showOther(p, func(w view, p *price.Priced) { w.cart(p, "", nil) })
}

// ShowOffer shows the cart of a code, and whether it has changed since it was offered. Then it has no texts.
func (c *Call) ShowOffer(p *price.Priced, changed bool) wire.Answer {
	return c.showOther(p, func(w view, p *price.Priced) {
		w.textless = changed
		w.changedCart(p, "", &service.Changed{}, nil, func(w *wire.Writer) { w.Bool("changed", changed) })
	})
}

func (c *Call) showOther(p *price.Priced, write func(view, *price.Priced)) wire.Answer {
	c.issuesToken = false
	return c.showAs(func(w view, p *price.Priced, _ auth.CartToken, _ *cart.MergeReport) { write(w, p) }, p)
}

// ShowLink answers with a link.
func (c *Call) ShowLink(l service.Link) wire.Answer {
	return c.show(func(w view) {
		w.BeginObject()
		w.Text("code", l.Code)
		w.Time("expires_at", l.ExpiresAt, wire.RFC3339)
		w.Optional("url", l.URL)
		w.EndObject()
	})
}

// WriteAdjusted writes what a merge, or its undo, has cut.
func WriteAdjusted(w *wire.Writer, all []cart.Adjustment) { view{Writer: w}.adjusted(all) }
