package service

import (
	"cmp"
	"context"
	"time"

	"commerce/auth"
	"commerce/auth/store"
	"commerce/auth/timing"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Visit is one API call: whose cart it uses, its budget for Redis, and the report of the
// latest merge. It is not safe for concurrent use.
type Visit struct {
	Store *store.Store
	Token auth.CartToken // of the guest's cart; "" for a customer's
	Fresh bool           // Token was created for this call, so it has no cart yet

	Country string // from which the request comes; "" if that is not known

	ReadOnly bool // the call begins and finishes no merge
	Counted  bool // the client's quota of new carts has counted this call

	created bool // this call has stored a cart

	Until time.Time // when the customer's JWT expires; zero for a guest

	merged *cart.MergeReport // of the latest merge of this call
	stored *cart.MergeReport // of the latest merge, as the cart was read
	noRoom *cart.MergeReport // that the cart of the guest's token has no room; nil if it has

	own      redisstore.Ref
	guest    redisstore.Ref // of the guest's token that came with a customer; zero for none
	customer string         // the subject of the customer's JWT; "" for a guest
	client   string         // that the call counts for
	budget   budget

	guestCart  redisstore.GuestCart // under the guest's token, before this call merged it
	guestFound bool                 // whether guestCart is known
	postponed  bool                 // the guest's cart could not be looked up or merged
}

// Visit begins a call. A guest without a token gets a new one, and Fresh is set.
func (s *Carts) Visit(c auth.Caller) (*Visit, error) {
	v := &Visit{Store: c.Store, Until: c.Expires, client: c.Client, budget: budget{s.Budget}}
	if c.Customer != "" {
		v.own, v.customer = redisstore.CustomerRef(c.Store.ID, c.Customer), c.Customer
		if c.Token != "" {
			v.guest = redisstore.GuestRef(c.Store.ID, c.Token)
		}
		return v, nil
	}
	v.Token, v.Fresh = c.Token, c.Token == ""
	if v.Fresh {
		var err error
		if v.Token, err = auth.NewCartToken(s.Rand); err != nil {
			return nil, err
		}
	}
	v.own = redisstore.GuestRef(c.Store.ID, v.Token)
	return v, nil
}

// GuestVisit begins a call to a guest's cart, which counts for a client.
func (s *Carts) GuestVisit(of *store.Store, token auth.CartToken, client string) *Visit {
	return &Visit{Store: of, Token: token, client: client, budget: budget{s.Budget}, own: redisstore.GuestRef(of.ID, token)}
}

// GoTo makes another guest's cart that of the visit.
func (v *Visit) GoTo(ref redisstore.Ref) { v.own = ref }

// BecomeGuest makes the cart of another token that of a guest's visit.
func (v *Visit) BecomeGuest(token auth.CartToken) {
	v.own, v.Token, v.Fresh = redisstore.GuestRef(v.Store.ID, token), token, false
}

// Customer is the subject of the customer's JWT; "" for a guest.
func (v *Visit) Customer() string { return v.customer }

// Guest refers to the cart of the guest's token that came with a customer; zero for none.
func (v *Visit) Guest() redisstore.Ref { return v.guest }

// Postponed reports whether a guest's cart waits to be merged into that of the visit, for another reason than room.
func (v *Visit) Postponed() bool { return v.postponed && v.noRoom == nil }

// HasCreated reports whether the call has stored a cart.
func (v *Visit) HasCreated() bool { return v.created }

// HasTime reports whether the call has time left for Redis.
func (v *Visit) HasTime() bool { return v.budget.left > 0 }

// Ref refers to the cart of the visit.
func (v *Visit) Ref() redisstore.Ref { return v.own }

// Client is the client that the call counts for.
func (v *Visit) Client() string { return v.client }

// Within limits calls of Redis to the time that the visit has left for them. The caller calls done after them.
func (v *Visit) Within(ctx context.Context) (limited context.Context, done func()) {
	limited, trip := v.budget.spend(ctx, 1)
	return limited, trip.done
}

// name identifies the request's cart, whether or not it is stored; "" for a new guest's.
func (v *Visit) name() string {
	if v.Fresh {
		return ""
	}
	return v.own.String()
}

// Merge reports the latest merge into the cart, if it was in the last minute, and whether the
// guest's cart waits for room; nil for neither. Responses include it.
func (v *Visit) Merge() *cart.MergeReport {
	if v.noRoom != nil {
		return v.merged.With(v.noRoom)
	}
	return cmp.Or(v.stored, v.merged)
}

// learn takes the report of the latest merge from what was read.
func (v *Visit) learn(c redisstore.Stored) { v.stored = cmp.Or(c.Merged, v.stored) }

func (v *Visit) logsIn() bool { return v.guest != (redisstore.Ref{}) }

const (
	defaultBudget = 200 * time.Millisecond
	mergeBudgets  = 5 // how many times its budget a request may spend on merges
)

// budget is the time that one request may spend waiting for Redis. Nothing else uses it up, such as
// the catalog. It is not safe for concurrent use: one goroutine serves a request.
type budget struct{ left time.Duration }

type trip struct {
	budget *budget
	times  *timing.Times
	start  time.Time
	cancel func()
}

// spend limits one round trip to a part of the time left: 1 is all of it; 2 is half of it, for a
// round trip that the request can be served without, and leaves time for the rest.
func (b *budget) spend(ctx context.Context, part time.Duration) (context.Context, trip) {
	t := trip{budget: b, times: timing.Of(ctx), start: time.Now()}
	ctx, t.cancel = timing.Within(ctx, b.left/part)
	return ctx, t
}

func (t trip) done() {
	t.cancel()
	took := time.Since(t.start)
	t.budget.left -= took
	t.times.Add(timing.Redis, took)
}
