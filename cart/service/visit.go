package service

import (
	"commerce/auth"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Visit is one API call: whose cart it uses, its budget for Redis, and the report of the
// merges that it ran. It is not safe for concurrent use.
type Visit struct {
	Store *store.Store
	Token auth.CartToken // of the guest's cart; "" for a customer's
	Fresh bool           // Token was created for this call, so it has no cart yet

	// Merge reports the merges of this call; nil when there were none. Every response
	// includes it, errors too.
	Merge *cart.MergeReport

	// Postponed means that the cart of the guest's token that came with a customer could
	// not be looked up or merged.
	Postponed bool

	own      redisstore.Ref
	guest    redisstore.Ref // of the guest's token that came with a customer; zero for none
	customer string         // the subject of the customer's JWT; "" for a guest
	client   string         // that the call counts for
	budget   budget

	guestApplied cart.KeyUse // the change that guest has applied under the request's key; zero for none
}

// Visit begins a call. A guest without a token gets a new one, and Fresh is set.
func (s *Carts) Visit(c auth.Caller) (*Visit, error) {
	v := &Visit{Store: c.Store, client: c.Client, budget: newBudget(s.budget)}
	if c.Customer != "" {
		v.own, v.customer = redisstore.CustomerRef(c.Store.ID, c.Customer), c.Customer
		if c.Token != "" {
			v.guest = redisstore.GuestRef(c.Store.ID, c.Token)
		}
		return v, nil
	}
	v.Token = c.Token
	if v.Token == "" {
		token, err := auth.NewCartToken(s.rand)
		if err != nil {
			return nil, err
		}
		v.Token, v.Fresh = token, true
	}
	v.own = redisstore.GuestRef(c.Store.ID, v.Token)
	return v, nil
}

// name identifies the visit's cart, whether or not it is stored; "" for a new guest's.
func (v *Visit) name() string {
	if v.Fresh {
		return ""
	}
	return v.own.String()
}

// logsIn reports whether a guest's token came with a customer.
func (v *Visit) logsIn() bool { return v.guest != (redisstore.Ref{}) }
