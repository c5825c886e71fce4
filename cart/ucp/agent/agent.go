// Package agent has the use cases of the agents of shoppers: see "An agent's cart" in docs/design.md.
package agent

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/handover"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
)

type Agent struct {
	Store   *store.Store
	Client  string // that the call counts for
	Profile string // the URL of its platform's profile
}

// Visit is one call of an agent, to the guest's cart that an ID opens. The cart's token is derived from the
// ID, so an ID is no token, and nothing is stored about it.
type Visit struct {
	*service.Visit
	ID string

	kept bool // a call to the cart of a shopper who has taken it over and kept the agent

	home    redisstore.Ref // where the ID's cart lies before it is handed over, with the results of keyed calls
	earlier redisstore.Ref // the home of the cart of a keyed create under the previous key; zero for none
	again   bool           // an earlier attempt of this keyed call may have changed the cart
	began   int64          // when this attempt began, in ms by Redis' clock
}

type Cart struct {
	price.Priced
	ID         string  // that opens it
	Since      string  // as in cart.Cell.Since
	Moved      bool    // it is empty, because the shopper has taken the cart over
	Created    bool    // Create has stored it
	Unknown    []int   // elements of the request with an ID that no line ever had
	Faults     []Fault // what could not be applied; nil if an attempt that died had applied a replacement
	Durability string  // as in Changed
}

// Fault is a part of a request that could not be applied.
type Fault struct {
	Element int // of the Replacement; -1 for none
	Code    int // place of a code in the agent's list; -1 for none
	Problem *problem.Error
}

const (
	keyName = 4  // characters of an ID that name the key
	idSize  = 26 // characters of an ID after these: 130 bits in base32
)

// Carts has the calls of agents.
type Carts struct{ carts *service.Carts }

// New returns the calls of agents to carts, which need Config.Keys.
func New(carts *service.Carts) *Carts { return &Carts{carts} }

// Visit begins a call to the cart of an ID; false for what is no ID of this service.
func (s *Carts) Visit(a Agent, id string) (*Visit, bool) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	if len(id) != keyName+idSize || strings.Trim(id[keyName:], alphabet) != "" {
		return nil, false
	}
	token, ok := s.carts.Keys.Derive(id[:keyName], "agent token", id)
	if !ok {
		return nil, false
	}
	v := s.carts.GuestVisit(a.Store, auth.CartToken(base64.RawURLEncoding.EncodeToString(token[:])), a.Client)
	return &Visit{Visit: v, ID: id, home: v.Ref()}, true
}

// NewVisit begins a call that creates a cart. With an Idempotency-Key, the ID is derived from store, profile and
// key, so that a retry meets the cart of its first attempt.
func (s *Carts) NewVisit(a Agent, key string) *Visit {
	id := func(name string) string {
		if key == "" {
			return name + s.carts.NewName(idSize)
		}
		sum, _ := s.carts.Keys.Derive(name, "agent id", strconv.FormatInt(a.Store.ID, 10), a.Profile, key)
		return name + base32.StdEncoding.EncodeToString(sum[:])[:idSize]
	}
	v, _ := s.Visit(a, id(s.carts.Keys.Name()))
	v.Fresh = key == ""
	if previous := s.carts.Keys.Previous(); previous != "" && key != "" {
		before, _ := s.Visit(a, id(previous))
		v.earlier = before.home
	}
	return v
}

// Read returns the cart. An ID under which there is none, or a canceled one, is a problem.NotFound.
func (s *Carts) Read(ctx context.Context, v *Visit) (Cart, error) {
	held, moved, err := s.open(ctx, v)
	if err != nil {
		return Cart{}, err
	}
	return s.asRead(ctx, v, held, moved)
}

// Create stores a cart with those elements that can be bought. If none can, it stores no cart, and
// the result is not Created.
func (s *Carts) Create(ctx context.Context, v *Visit, on service.Conditions, r Replacement) (Cart, error) {
	on.IfMatch = onlyAt(cart.Cart{})
	var unknown []int
	r.Elements, _, unknown = s.named(v, r.Elements, cart.Cart{})
	ops := replacing(r, cart.Cart{})
	for i := range ops {
		if ops[i].Coupon != nil {
			ops[i].Coupon.NeedsLine = true // a coupon alone makes no cart
		}
	}
	made, err := s.apply(ctx, v, on, ops, cart.AgentSees, "")
	if isVersionMismatch(err) {
		err = service.ErrKeyReused // the key's cart exists, and its first result is gone
	}
	made.Created, made.Unknown = made.Cart.ID != "", unknown
	return made, err
}

// Replace replaces the lines of the cart in one step, as far as they can be bought. With ErrChangedUnseen,
// nothing was changed, and the cart is as it is now. A client's If-Match that names another version is a problem.VersionMismatch.
func (s *Carts) Replace(ctx context.Context, v *Visit, on service.Conditions, r Replacement) (Cart, error) {
	return s.change(ctx, v, on, r.Elements, func(c cart.Cart, named []Element) []operation {
		wanted := r
		wanted.Elements, wanted.Codes = named, s.known(ctx, v, r.Codes, c.Coupons)
		return replacing(wanted, c)
	}, cart.AgentSees)
}

// Cancel ends the cart and its ID, also that of a cart that has moved, and returns it as it was. Of seen, the lines that the
// agent sent, the IDs count. It fails like Replace.
func (s *Carts) Cancel(ctx context.Context, v *Visit, on service.Conditions, seen ...Element) (Cart, error) {
	var before cart.Cart
	canceled, err := s.change(ctx, v, on, seen, func(c cart.Cart, _ []Element) []operation {
		before = c
		return []operation{{service.Op{Clear: true}, -1, -1}}
	}, cart.AgentCanceled)
	if err == nil && before.ID != "" {
		if canceled.Priced, err = s.carts.PriceCart(ctx, v.Visit, before); err != nil && on.Key == "" {
			err = cart.OutcomeUnknown("show cart", err)
		}
	}
	if err == nil {
		err = s.carts.Step(ctx, func(ctx context.Context) error { return s.carts.Redis.ForgetMove(ctx, v.home) })
	}
	return canceled, err
}

// change makes the list that ops returns for the cart as read, if the agent has seen that: see seen. If the
// cart has changed since the read, it reads again. A repeat, and then the agent's If-Match, take precedence over any
// refusal.
func (s *Carts) change(ctx context.Context, v *Visit, on service.Conditions, sent []Element, ops func(cart.Cart, []Element) []operation, as string) (Cart, error) {
	for v.HasTime() {
		held, moved, err := s.open(ctx, v)
		named, moments, unknown := s.named(v, sent, held.Cart)
		judged, refusal := on, s.unseen(held, moved && as != cart.AgentCanceled, on, moments)
		if errors.Is(err, ErrNoCart) {
			judged.IfMatch, refusal = "", ErrNoCart
		} else if err != nil {
			return Cart{}, err
		}
		if refusal != nil {
			repeated, err := s.carts.Refuse(ctx, v.Visit, judged, refusal)
			made, err := s.asMade(v, repeated, nil, err)
			if errors.Is(err, errUnseen) {
				if made, err = s.asRead(ctx, v, held, moved); err == nil {
					err = ErrChangedUnseen
				}
			}
			made.Unknown = unknown
			return made, err
		}
		exactly := on
		exactly.IfMatch = onlyAt(held.Cart)
		made, err := s.apply(ctx, v, exactly, ops(held.Cart, named), as, held.Since())
		if !isVersionMismatch(err) {
			made.Moved, made.Unknown = moved && made.Cart.ID == "", unknown
			return made, err
		}
	}
	return Cart{}, errAlwaysChanged
}

// unseen returns why an agent must not change the cart as it was read; nil if it may. To begin another cart after moved, it must
// send what it was shown of the empty one.
func (s *Carts) unseen(held redisstore.Stored, moved bool, on service.Conditions, moments []string) *problem.Error {
	switch {
	case !on.Allows(&held.Cart):
		return service.ErrVersionMismatch
	case moved && len(moments) == 0: // a version of no cart says nothing
		return errUnseen
	case on.IfMatch != "" && on.IfMatch != "*" && len(moments) == 0: // it has seen the version that it names
		return nil
	case !seen(&held.Cell, moments):
		return errUnseen
	}
	return nil
}

func (s *Carts) apply(ctx context.Context, v *Visit, on service.Conditions, ops []operation, as, shown string) (Cart, error) {
	list := service.List{Each: true, Agent: as, Shown: shown}
	for _, op := range ops {
		list.Ops = append(list.Ops, op.Op)
	}
	changed, err := s.carts.Ops(ctx, v.Visit, on, list)
	return s.asMade(v, changed, ops, err)
}

func (s *Carts) asMade(v *Visit, changed service.Changed, ops []operation, err error) (Cart, error) {
	if err == nil && changed.Replayed && changed.At < v.began-redisstore.Tolerance.Milliseconds() && !v.again { // not a repeat of the Redis client's
		err = service.ErrKeyReused // the change was made, and its first result is gone
	}
	if err != nil {
		return Cart{}, err
	}
	now := cart.Cell{Cart: changed.Priced.Cart, Agent: changed.Agent}
	made := Cart{Priced: changed.Priced, ID: v.ID, Since: now.Since(), Durability: changed.Durability}
	if changed.Ops != nil && !changed.Ops.Unknown {
		for i, o := range changed.Ops.Each {
			if o.Refusal != nil {
				made.Faults = append(made.Faults, Fault{ops[i].element, ops[i].code, o.Refusal})
			}
		}
	}
	return made, nil
}

// operation is an operation of an agent's list, and the element or the place of the code that it is for; -1 for none.
type operation struct {
	service.Op
	element, code int
}

func replacing(r Replacement, c cart.Cart) (ops []operation) {
	for _, step := range r.Plan(c) {
		op := operation{element: step.Element, code: -1}
		switch {
		case step.Quantity == 0:
			op.Remove = &step.Line
		case step.Line != "":
			op.Edit = &service.Edit{Item: step.Line, Edit: cart.Edit{Quantity: &step.Quantity, QuantityMember: "quantity"}}
		default:
			e := r.Elements[step.Element]
			op.Add = &cart.Addition{ProductID: e.Product, Quantity: e.Quantity, QuantityMember: "quantity"}
			if e.Plan != 0 {
				op.Add.PlanID = &e.Plan
			}
		}
		ops = append(ops, op)
	}
	if r.Codes != nil && len(c.Coupons) > 0 { // they go also if the new ones are refused: codes replace codes
		ops = append(ops, operation{Op: service.Op{Coupon: &service.CouponCode{}}, element: -1, code: -1})
	}
	for _, code := range r.Codes {
		one := &service.CouponCode{Code: code.Text, Member: "codes", Joins: true, Held: slices.Contains(c.Coupons, code.Text)}
		ops = append(ops, operation{Op: service.Op{Coupon: one}, element: -1, code: code.At})
	}
	if r.Country != "" {
		ops = append(ops, operation{Op: service.Op{Buyer: &cart.Buyer{Country: r.Country, Source: cart.ByAgent}}, element: -1, code: -1})
	}
	return ops
}

// open reads the cart that the ID opens. moved means that the shopper has taken it over, and the agent has none
// now. The error of an ID without a cart is ErrNoCart.
func (s *Carts) open(ctx context.Context, v *Visit) (held redisstore.Stored, moved bool, err error) {
	v.GoTo(v.home)
	v.kept = false
	held, err = s.carts.Load(ctx, v.Visit)
	if err == nil && held.ID == "" {
		held, moved, err = s.follow(ctx, v)
	}
	if err == nil && (held.Agent == cart.AgentCanceled || held.ID == "" && !moved) {
		err = ErrNoCart
	}
	return held, moved, err
}

// follow reads the cart of a shopper who has taken over the agent's and kept the agent. While there is none, the
// visit stays in the agent's own place.
func (s *Carts) follow(ctx context.Context, v *Visit) (held redisstore.Stored, moved bool, err error) {
	limited, done := v.Within(ctx)
	to, mark, err := s.carts.Redis.Moved(limited, v.home)
	done()
	none := redisstore.Stored{}
	if mark != "" { // a moment that differs from those of other hand-overs
		none.Agent = "0." + mark[max(len(mark)-8, 0):] + "|" + none.Moment()
	}
	if err != nil || to == (redisstore.Ref{}) {
		return none, mark != "", err
	}
	v.GoTo(to)
	v.kept = true
	held, err = s.carts.Load(ctx, v.Visit)
	switch {
	case err != nil:
	case held.ID == "" && len(held.Pending) > 0:
		err = cart.Unavailable("follow cart", errors.New("agent: its lines are on their way"))
	case held.Agent == "": // no cart, or a later one of the fresh token
		v.GoTo(v.home)
		held, v.kept = none, false
	}
	return held, held.ID == "", err
}

func (s *Carts) asRead(ctx context.Context, v *Visit, held redisstore.Stored, moved bool) (Cart, error) {
	priced, err := s.carts.PriceCart(ctx, v.Visit, held.Cart)
	return Cart{Priced: priced, ID: v.ID, Since: held.Since(), Moved: moved}, err
}

// known spells codes as the cart does that it holds, and returns nil if it holds just these. If the coupons are unreachable,
// codes that compare equal are the same.
func (s *Carts) known(ctx context.Context, v *Visit, codes []Code, held []string) []Code {
	if codes == nil {
		return nil
	}
	all, same := make([]Code, len(codes)), len(codes) == len(held)
	for i, code := range codes {
		all[i] = code
		key := cart.CouponKey(code.Text)
		alike, _ := s.carts.Coupons.CouponsByKey(ctx, v.Store.ID, key)
		for _, h := range held {
			if h == code.Text || cart.CouponKey(h) == key && price.NamedCoupon(alike, h) == price.NamedCoupon(alike, code.Text) {
				all[i].Text = h
			}
		}
		same = same && all[i].Text == held[i]
	}
	if same {
		return nil
	}
	return all
}

// HandoverOf offers the cart as it was read, which is not empty, to the shopper. An agent whom the shopper has kept gets the page
// without a code: redeeming one would give the agent a token, which shows the shopper's texts.
func (s *Carts) HandoverOf(v *Visit, c cart.Cart) service.Link {
	if v.kept {
		return service.Link{URL: v.Store.CartURL}
	}
	return handover.New(s.carts).OfferOf(v.Visit, c, true)
}

// errAlwaysChanged means that the cart was another one after each read.
var errAlwaysChanged = cart.Unavailable("change cart", errors.New("agent: other requests changed the cart after each read"))

// onlyAt is the If-Match of a change of the cart as it is.
func onlyAt(c cart.Cart) string { return " " + c.Tag() + " " }

func isVersionMismatch(err error) bool {
	refused, ok := errors.AsType[*problem.Error](err)
	return ok && refused.Code == problem.VersionMismatch
}

var (
	// ErrNoCart is the error of an ID that opens no cart.
	ErrNoCart = problem.New(problem.NotFound, "", locale.Text{
		locale.En: "The cart does not exist, has expired or was canceled.",
		locale.Ar: "السلة غير موجودة أو انتهت صلاحيتها أو أُلغيت.",
	})
	errUnseen = service.ErrVersionMismatch.WithData(nil) // shown as ErrChangedUnseen
)
