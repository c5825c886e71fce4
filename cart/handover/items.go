package handover

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/wire"
)

// Items are what a link adds to the cart of whoever redeems its code. Nothing is stored before.
type Items struct {
	Lines   []Item
	Codes   []string // of coupons
	Country string   // of the buyer, in ISO 3166-1; "" for none
	Ends    int64    // Unix time; set by OfferItems
}

type Item struct {
	Product  int64 // 0 if no product can have the requested ID
	Plan     int64 // 0 for none
	Quantity int64 // 1 or more
}

func itemsPurpose(v *service.Visit) string { return "items " + strconv.FormatInt(v.Store.ID, 10) }

// OfferItems returns a link to items, without I/O. It needs Config.Keys.
func (s *Handovers) OfferItems(v *service.Visit, items Items) service.Link {
	ends := s.carts.Now().Add(codeLife).Truncate(time.Second)
	items.Ends = ends.Unix()
	text, err := json.Marshal(items)
	if err != nil {
		panic(err) // only for types that JSON does not have
	}
	return service.LinkTo(v, "handover", s.carts.Keys.Seal(itemsPurpose(v), text), ends)
}

// openItems returns the items of a code; false for another code, also an expired one.
func (s *Handovers) openItems(v *service.Visit, code string) (items Items, ok bool) {
	text, ok := s.carts.Keys.Open(itemsPurpose(v), code)
	ok = ok && json.Unmarshal(text, &items) == nil
	return items, ok && s.carts.Now().Before(time.Unix(items.Ends, 0))
}

// previewItems shows items without the codes of coupons, because a preview does not count as a guess.
func (s *Handovers) previewItems(ctx context.Context, v *service.Visit, items Items, code string) (price.Priced, error) {
	err := s.editMark(ctx, v, code, func(held string) (*redisstore.Edit, error) {
		if held != "" {
			return nil, cart.ErrNoCode
		}
		return nil, nil
	})
	if err != nil {
		return price.Priced{}, err
	}
	var c cart.Cart
	for _, item := range items.Lines {
		id := cart.NewLineID(item.Product, item.Plan, nil)
		if item.Product == 0 || int64(len(c.Lines)) == s.carts.Limits.Lines {
			continue
		}
		if !c.Has(id) {
			c.Lines = append(c.Lines, cart.Line{ID: id})
		}
		line := c.Line(id)
		line.Quantity = min(line.Quantity+min(item.Quantity, s.carts.Limits.Quantity), s.carts.Limits.Quantity)
	}
	priced, err := s.carts.PriceCart(ctx, v, c)
	for _, l := range priced.Lines {
		l.AddedPrice = l.Unit.Total()
	}
	return priced, err
}

// redeemItems adds the items of a code to the visit's cart, or to that of a fresh token: see target. A key adds them once, and
// only the first one can.
func (s *Handovers) redeemItems(ctx context.Context, v *service.Visit, items Items, r Redemption) (service.Changed, error) {
	d := s.newRedemption(v, handedOver{}, r)
	var err error
	if d.to, err = s.target(ctx, v, d); err != nil {
		return service.Changed{}, err
	}
	refusal := error(nil)
	if r.IfMatch != "" && d.to == v.Ref() {
		stored, err := s.carts.Load(ctx, v)
		if err != nil {
			return service.Changed{}, err
		}
		if !d.on.Allows(&stored.Cart) {
			refusal = s.carts.VersionMismatch(ctx, v, stored.Cart)
		}
	}
	if err = s.markItems(ctx, v, d, r.Code, refusal); err == nil {
		err = s.enter(ctx, v, d)
	}
	if err != nil {
		return service.Changed{}, err
	}
	v.Counted = true // by markItems
	key := wire.Digest(d.note)
	return s.carts.Ops(ctx, v, service.Conditions{Key: key, Fingerprint: key}, service.List{Ops: items.ops(), Each: true})
}

// ops keep the codes that the cart has.
func (i Items) ops() (ops []service.Op) {
	for _, item := range i.Lines {
		add := &cart.Addition{ProductID: item.Product, Quantity: item.Quantity, QuantityMember: "qty"}
		if item.Plan != 0 {
			add.PlanID = &item.Plan
		}
		ops = append(ops, service.Op{Add: add})
	}
	for _, code := range i.Codes {
		ops = append(ops, service.Op{Coupon: &service.CouponCode{Code: code, Member: "coupon", NeedsLine: true, Joins: true}})
	}
	if i.Country != "" {
		ops = append(ops, service.Op{Buyer: &cart.Buyer{Country: i.Country, Source: cart.ByAgent}})
	}
	return ops
}

// markItems stores that a code is used, by the redeemer's key and for which cart, unless there is a refusal. It goes on with the
// cart of an earlier try.
func (s *Handovers) markItems(ctx context.Context, v *service.Visit, d *redeeming, code string, refusal error) error {
	mark := func(owner redisstore.Ref) string { return d.note + " " + wire.Digest(owner.String()) }
	return s.editMark(ctx, v, code, func(held string) (*redisstore.Edit, error) {
		if held != "" {
			owners := d.owners(v)
			i := slices.IndexFunc(owners, func(owner redisstore.Ref) bool { return mark(owner) == held })
			if i < 0 {
				return nil, cart.ErrNoCode
			}
			d.to = owners[i]
			return nil, nil
		}
		if tooMany := s.carts.RefuseCreation(v, 0); tooMany != nil && refusal == nil {
			refusal = tooMany
		}
		if refusal != nil {
			return nil, refusal
		}
		return &redisstore.Edit{
			Set: []any{used, mark(d.to)}, Life: 2 * codeLife, // whatever Redis' clock says
			Made: func() { s.carts.CountCreation(ctx, v, 0) },
		}, nil
	})
}

const used = "r"

// editMark decides by the mark of a code; "" for one that was not used.
func (s *Handovers) editMark(ctx context.Context, v *service.Visit, code string, decide func(held string) (*redisstore.Edit, error)) error {
	limited, done := v.Within(ctx)
	defer done()
	key := v.Ref().OtherKey("b", auth.CartToken(code).Digest())
	return s.carts.Redis.Edit(limited, "mark code", []string{key}, func(found *redisstore.Slot) (*redisstore.Edit, error) {
		return decide(found.Get(0, used))
	})
}
