package service

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/redisstore"
)

type Agent struct {
	Store   *store.Store
	Client  string // that the call counts for
	Profile string // the URL of its platform's profile
}

// AgentVisit is one call of an agent, to the guest's cart that an ID opens. The cart's token is derived from the
// ID, so an ID is no token, and nothing is stored about it.
type AgentVisit struct {
	*Visit
	ID string

	home    redisstore.Ref // where the ID's cart lies before it is handed over, with the results of keyed calls
	earlier redisstore.Ref // the home of the cart of a keyed create under the previous key; zero for none
	again   bool           // an earlier attempt of this keyed call may have changed the cart
	began   int64          // when this attempt began, in ms by Redis' clock
}

type AgentCart struct {
	cart.Priced
	ID         string  // that opens it
	Moved      bool    // it is empty, because the shopper has taken the cart over
	Created    bool    // AgentCreate has stored it
	Faults     []Fault // what could not be applied; nil if an attempt that died had applied a replacement
	Durability string  // as in Changed
}

// Fault is a part of a request that could not be applied.
type Fault struct {
	Element int  // of the cart.Replacement; -1 for none
	Coupon  bool // it is the coupon
	Problem *problem.Error
}

const (
	keyName = 4  // characters of an ID that name the key
	idSize  = 26 // characters of an ID after these: 130 bits in base32
)

// AgentVisit begins a call to the cart of an ID; false for what is no ID of this service.
func (s *Carts) AgentVisit(a Agent, id string) (*AgentVisit, bool) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	if len(id) != keyName+idSize || strings.Trim(id[keyName:], alphabet) != "" {
		return nil, false
	}
	token, ok := s.Keys.Derive(id[:keyName], "agent token", id)
	if !ok {
		return nil, false
	}
	v := &Visit{Store: a.Store, Token: auth.CartToken(base64.RawURLEncoding.EncodeToString(token[:])), client: a.Client, budget: budget{s.Budget}}
	v.own = redisstore.GuestRef(a.Store.ID, v.Token)
	return &AgentVisit{Visit: v, ID: id, home: v.own}, true
}

// NewAgentVisit begins a call that creates a cart. With an Idempotency-Key, the ID is derived from store, profile and
// key, so that a retry meets the cart of its first attempt.
func (s *Carts) NewAgentVisit(a Agent, key string) *AgentVisit {
	id := func(name string) string {
		if key == "" {
			return name + s.newName(idSize)
		}
		sum, _ := s.Keys.Derive(name, "agent id", strconv.FormatInt(a.Store.ID, 10), a.Profile, key)
		return name + base32.StdEncoding.EncodeToString(sum[:])[:idSize]
	}
	v, _ := s.AgentVisit(a, id(s.Keys.Name()))
	v.Fresh = key == ""
	if previous := s.Keys.Previous(); previous != "" && key != "" {
		before, _ := s.AgentVisit(a, id(previous))
		v.earlier = before.home
	}
	return v
}

// AgentRead returns the cart. An ID under which there is none, or a canceled one, is a problem.NotFound.
func (s *Carts) AgentRead(ctx context.Context, v *AgentVisit) (AgentCart, error) {
	held, moved, err := s.open(ctx, v)
	if err != nil {
		return AgentCart{}, err
	}
	return s.asRead(ctx, v, held, moved)
}

// AgentCreate stores a cart with those elements that can be bought. If none can, it stores no cart, and
// the result is not Created.
func (s *Carts) AgentCreate(ctx context.Context, v *AgentVisit, on Conditions, r cart.Replacement) (AgentCart, error) {
	on.IfMatch = onlyAt(cart.Cart{})
	ops := replacing(r, cart.Cart{})
	for i := range ops {
		if ops[i].Coupon != nil {
			ops[i].Coupon.needsLine = true // a coupon alone makes no cart
		}
	}
	made, err := s.changeAsAgent(ctx, v, on, ops, cart.AgentSees)
	if isVersionMismatch(err) {
		err = errKeyReused // the key's cart exists, and its first result is gone
	}
	made.Created = made.Cart.ID != ""
	return made, err
}

// AgentReplace replaces the lines of the cart in one step, as far as they can be bought. With cart.ErrChangedUnseen,
// nothing was changed, and the cart is as it is now. A client's If-Match that names another version is a problem.VersionMismatch.
func (s *Carts) AgentReplace(ctx context.Context, v *AgentVisit, on Conditions, r cart.Replacement) (AgentCart, error) {
	return s.asAgent(ctx, v, on, r.IDs(), func(c cart.Cart) []agentOp {
		wanted := s.named(r, c)
		if r.Coupon != nil && s.sameCoupon(ctx, v.Visit, *r.Coupon, c.Coupon) {
			wanted.Coupon = nil
		}
		return replacing(wanted, c)
	}, cart.AgentSees)
}

// AgentCancel ends the cart, and returns it as it was. ids are those of lines that the agent sent, if any. It fails
// like AgentReplace.
func (s *Carts) AgentCancel(ctx context.Context, v *AgentVisit, on Conditions, ids ...string) (AgentCart, error) {
	var before cart.Cart
	canceled, err := s.asAgent(ctx, v, on, ids, func(c cart.Cart) []agentOp {
		before = c
		return []agentOp{{Op{Clear: true}, -1}}
	}, cart.AgentCanceled)
	if err == nil && before.ID != "" {
		if canceled.Priced, err = s.price(ctx, v.Visit, before); err != nil && on.Key == "" {
			err = cart.OutcomeUnknown("show cart", err)
		}
	}
	return canceled, err
}

// asAgent makes the list that ops returns for the cart as read, if the agent has seen that: see cart.SeenBy. If the
// cart has changed since the read, it reads again. A repeat, and then the agent's If-Match, take precedence over any
// refusal.
func (s *Carts) asAgent(ctx context.Context, v *AgentVisit, on Conditions, ids []string, ops func(cart.Cart) []agentOp, as string) (AgentCart, error) {
	for v.budget.left > 0 {
		held, moved, err := s.open(ctx, v)
		judged, refusal := on, s.unseen(held, on, ids)
		if errors.Is(err, ErrNoCart) {
			judged.IfMatch, refusal = "", ErrNoCart
		} else if err != nil {
			return AgentCart{}, err
		}
		if refusal != nil {
			repeated, err := s.Refuse(ctx, v.Visit, judged, refusal)
			made, err := s.asMade(v, repeated, nil, err)
			if errors.Is(err, errUnseen) {
				if made, err = s.asRead(ctx, v, held, moved); err == nil {
					err = cart.ErrChangedUnseen
				}
			}
			return made, err
		}
		exactly := on
		exactly.IfMatch = onlyAt(held.Cart)
		made, err := s.changeAsAgent(ctx, v, exactly, ops(held.Cart), as)
		if !isVersionMismatch(err) {
			made.Moved = moved && made.Cart.ID == ""
			return made, err
		}
	}
	return AgentCart{}, errAlwaysChanged
}

// unseen returns why an agent must not change the cart as it was read; nil if it may.
func (s *Carts) unseen(held redisstore.Stored, on Conditions, ids []string) *problem.Error {
	switch {
	case isOther(held.Cart, on):
		return errOtherVersion
	case on.IfMatch != "" && on.IfMatch != "*" && len(ids) == 0: // it has seen the version that it names
		return nil
	case !held.SeenBy(s.momentsOf(ids), held.Agent):
		return errUnseen
	}
	return nil
}

func (s *Carts) changeAsAgent(ctx context.Context, v *AgentVisit, on Conditions, ops []agentOp, as string) (AgentCart, error) {
	list := List{Each: true, agent: as}
	for _, op := range ops {
		list.Ops = append(list.Ops, op.Op)
	}
	changed, err := s.Ops(ctx, v.Visit, on, list)
	return s.asMade(v, changed, ops, err)
}

func (s *Carts) asMade(v *AgentVisit, changed Changed, ops []agentOp, err error) (AgentCart, error) {
	if err == nil && changed.Replayed && changed.at < v.began-redisstore.Tolerance.Milliseconds() && !v.again { // not a repeat of the Redis client's
		err = errKeyReused // the change was made, and its first result is gone
	}
	if err != nil {
		return AgentCart{}, err
	}
	made := AgentCart{Priced: changed.Priced, ID: v.ID, Durability: changed.Durability}
	if changed.Ops != nil && !changed.Ops.Unknown {
		for i, o := range changed.Ops.Each {
			if o.Refusal != nil {
				made.Faults = append(made.Faults, Fault{ops[i].element, ops[i].Coupon != nil, o.Refusal})
			}
		}
	}
	return made, nil
}

// agentOp is an operation of an agent's list, and the element that it is for; -1 for none.
type agentOp struct {
	Op
	element int
}

func replacing(r cart.Replacement, c cart.Cart) (ops []agentOp) {
	for _, step := range r.Plan(c) {
		op := agentOp{element: step.Element}
		switch {
		case step.Quantity == 0:
			op.Remove = &step.Line
		case step.Line != "":
			op.Edit = &Edit{Item: step.Line, Edit: cart.Edit{Quantity: &step.Quantity, QuantityMember: "quantity"}}
		default:
			e := r.Elements[step.Element]
			op.Add = &cart.Addition{ProductID: e.Product, Quantity: e.Quantity, QuantityMember: "quantity"}
			if e.Plan != 0 {
				op.Add.PlanID = &e.Plan
			}
		}
		ops = append(ops, op)
	}
	if r.Coupon != nil {
		if c.Coupon != "" { // it goes also if the new one is refused: codes replace codes
			ops = append(ops, agentOp{Op{Coupon: &CouponCode{}}, -1})
		}
		if *r.Coupon != "" {
			ops = append(ops, agentOp{Op{Coupon: &CouponCode{Code: *r.Coupon, Member: "codes"}}, -1})
		}
	}
	return ops
}

// open reads the cart that the ID opens. moved means that the shopper has taken it over, and the agent has none
// now. The error of an ID without a cart is ErrNoCart.
func (s *Carts) open(ctx context.Context, v *AgentVisit) (held redisstore.Stored, moved bool, err error) {
	v.own, v.kept = v.home, false
	held, err = s.load(ctx, v.Visit)
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
func (s *Carts) follow(ctx context.Context, v *AgentVisit) (held redisstore.Stored, moved bool, err error) {
	limited, trip := v.budget.spend(ctx, 1)
	to, moved, err := s.Redis.Moved(limited, v.home)
	trip.done()
	if err != nil || to == (redisstore.Ref{}) {
		return held, moved, err
	}
	v.own, v.kept = to, true
	held, err = s.load(ctx, v.Visit)
	switch {
	case err != nil:
	case held.ID == "" && len(held.Pending) > 0:
		err = cart.Unavailable("follow cart", errors.New("service: its lines are on their way"))
	case held.Agent == "": // no cart, or a later one of the fresh token
		held, v.own, v.kept = redisstore.Stored{}, v.home, false
	}
	return held, held.ID == "", err
}

func (s *Carts) asRead(ctx context.Context, v *AgentVisit, held redisstore.Stored, moved bool) (AgentCart, error) {
	priced, err := s.price(ctx, v.Visit, held.Cart)
	return AgentCart{Priced: priced, ID: v.ID, Moved: moved}, err
}

// errAlwaysChanged means that the cart was another one after each read.
var errAlwaysChanged = cart.Unavailable("change cart", errors.New("service: other requests changed the cart after each read"))

// onlyAt is the If-Match of a change of the cart as it is.
func onlyAt(c cart.Cart) string { return " " + c.Tag() + " " }

// isOther reports whether If-Match names another version of the cart.
func isOther(c cart.Cart, on Conditions) bool {
	return !on.Allows(&c)
}

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
	errOtherVersion = problem.New(problem.VersionMismatch, "If-Match", textVersionMismatch)
	errKeyReused    = problem.New(problem.IdempotencyConflict, "Idempotency-Key", textKeyReused)
	errUnseen       = problem.New(problem.VersionMismatch, "", textVersionMismatch) // shown as cart.ErrChangedUnseen
)
