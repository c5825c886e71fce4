package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/handover"
	"commerce/cart/price"
	"commerce/cart/redisstore"
	"commerce/cart/service"
	undos "commerce/cart/undo"
)

type request struct {
	schedule *schedule
	op       *operation
	number   int
	who      caller
	service  instance

	at     *pending // the commands that it waits with; nil while it runs
	decide chan decision
	thread chan func()
	steps  int // commands decided on so far

	shard     shard // that it sent its last command to
	failovers int   // of that shard at that time

	startedAt, endedAt time.Duration // in world.passed
	call, end          int64         // its place in the history

	unasked   bool // a question about a guest's cart had no answer
	dead      bool // its process is gone
	overdue   bool // no part of it has time left
	abandoned bool // its client is gone
	over      bool
	late      int           // its commands that were delayed
	arrivedAt time.Duration // in world.passed: when the last of these arrived
	twice     int           // its commands that were sent twice
	tails     int           // its delayed commands that have not arrived yet
	result    result
}

func (a *request) String() string {
	if len(a.op.tries) == 1 {
		return a.op.name
	}
	return fmt.Sprintf("%s%d", a.op.name, a.number+1)
}

type result struct {
	err        error // nil, a refusal, or what left the outcome unknown
	died       bool
	cart       cart.Cart
	item       *cart.LineID   // the line that the answer names
	outcomes   []problem.Code // of the operations of a list, "" for those that were applied; nil if the answer has none
	merge      *cart.MergeReport
	replayed   bool
	durability string
	where      caller // of a taken cart: the cart that the answer shows
	undone     *undos.Undone
	kept       string // the bytes of an agent's answer
	code       string // of a share
	copied     string // the lines of a share that was opened
}

// unknown reports whether the client does not know if the request was carried out.
func (r result) unknown() bool { return r.died || r.err != nil && r.refused() == "" }

func (r result) refused() problem.Code {
	var e *problem.Error
	if r.died || !errors.As(r.err, &e) || e.Code == problem.Unavailable || e.Code == problem.OutcomeUnknown {
		return ""
	}
	return e.Code
}

// effectless reports whether the request certainly changed nothing: it was refused, or,
// without a key, failed with problem.Unavailable.
func (a *request) effectless() bool {
	var e *problem.Error
	return a.result.refused() != "" ||
		!a.result.died && a.op.key == "" && errors.As(a.result.err, &e) && e.Code == problem.Unavailable
}

func (r result) String() string {
	switch {
	case r.died:
		return "died"
	case r.err != nil:
		return r.err.Error()
	case r.replayed:
		return "replayed, " + r.lines()
	}
	return r.lines()
}

func (r result) lines() string {
	text := fmt.Sprintf("[%s] version %d", linesOf(r.cart), r.cart.Version)
	if r.outcomes != nil {
		text += fmt.Sprintf(", outcomes %q", r.outcomes)
	}
	return text
}

func (a *request) run(ctx context.Context) {
	defer func() {
		a.at, a.over = nil, true
		a.result.died = a.dead
		a.schedule.stopped <- a
	}()
	if a.op.verb == erases {
		_, a.result.err = a.service.redis.Erase(ctx, a.who.ref(a.schedule.world))
		return
	}
	if a.op.verb == follows {
		a.result.err = a.follow(ctx)
		return
	}
	if a.op.verb == browses || a.op.verb == orders {
		a.actAsAgent(ctx)
		return
	}
	v, err := a.service.Visit(a.who.auth(a.schedule.world))
	if err != nil {
		a.result.err = err
		return
	}
	if a.op.verb == reads {
		priced, err := a.service.Read(ctx, v)
		a.result.cart, a.result.err, a.result.merge = priced.Cart, err, v.Merge()
		return
	}
	if a.op.verb >= shares {
		a.service.Merge(ctx, v, "")
		a.actOnShare(ctx, v)
		return
	}
	a.service.Merge(ctx, v, a.op.key)
	if a.op.verb == takes {
		changed, err := handover.New(a.service.Carts).Redeem(ctx, v, handover.Redemption{Code: a.schedule.codes[a.op.maker], Key: takeKey(a.op.maker), KeepAgent: a.op.agent})
		a.result = result{err: err, cart: changed.Cart, merge: v.Merge(), replayed: changed.Replayed, durability: changed.Durability, where: a.who.owner()}
		if v.Token == a.schedule.fresh[a.op.maker] {
			a.result.where = caller{-1, a.op.freshToken()}
		}
		return
	}
	if a.op.verb == undoes {
		u, err := undos.New(a.service.Carts).Undo(ctx, v, redisstore.Conditions{}, a.op.merge)
		a.result = result{err: err, cart: u.Cart, merge: v.Merge(), durability: u.Durability}
		if err == nil && !a.dead {
			a.result.undone, a.schedule.fresh[a.op.maker] = &u, u.Guest
		}
		return
	}
	changed, err := a.change(ctx, v)
	a.result = result{
		err: err, cart: changed.Cart, item: changed.Item, merge: v.Merge(),
		replayed: changed.Replayed, durability: changed.Durability,
	}
	if changed.Ops != nil && !changed.Ops.Unknown {
		a.result.outcomes = []problem.Code{}
		for _, one := range changed.Ops.Each {
			code := problem.Code("")
			if one.Refusal != nil {
				code = one.Refusal.Code
			}
			a.result.outcomes = append(a.result.outcomes, code)
		}
	}
	var e *problem.Error
	if errors.As(err, &e) && e.Code == problem.VersionMismatch {
		a.result.cart = e.Data.(*price.Priced).Cart
	}
}

func takeKey(number int) string { return fmt.Sprintf("a key of the redeemer %d's own", number) }

func (a *request) change(ctx context.Context, v *service.Visit) (service.Changed, error) {
	o := a.op
	on := redisstore.Conditions{Key: o.key, Stamp: o.stamp}
	if o.key != "" {
		on.Fingerprint = "request-" + o.name
	}
	if o.checks {
		on.IfMatch = o.ifMatch.String()
	}
	item := cart.LineID(fmt.Sprint(o.product))
	switch o.verb {
	case adds:
		return a.service.Add(ctx, v, on, o.addition())
	case sets:
		return a.service.Edit(ctx, v, on, service.Edit{Item: item, Edit: cart.Edit{Quantity: &o.quantity}})
	case edits:
		return a.service.Edit(ctx, v, on, o.request())
	case lists:
		list := service.List{Each: o.each}
		for _, one := range o.list {
			list.Ops = append(list.Ops, one.inList())
		}
		return a.service.Ops(ctx, v, on, list)
	case removes:
		return a.service.Do(ctx, v, on, service.Op{Remove: &item})
	case redeems:
		if o.coupon == 0 {
			return a.service.Do(ctx, v, on, service.Op{Coupon: &service.CouponCode{}})
		}
		return a.service.RedeemCoupon(ctx, v, on, service.CouponCode{Code: couponOf(o.coupon)})
	}
	return a.service.Do(ctx, v, on, o.inList())
}
