package service

import (
	"commerce/auth"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/redisstore"
)

// Visit is one call: whose cart it is about, its time for Redis, and what merges did
// before it. One goroutine uses it.
type Visit struct {
	Store *store.Store
	Token auth.CartToken // opens the guest's cart; "" for a customer's
	Fresh bool           // Token was made for this call: nothing can lie under it

	// Merge is what merges did during the visit; nil for nothing. It belongs to the
	// answer, also to that of a refusal.
	Merge *cart.MergeReport

	// Postponed says that what lies under the guest's token that came with a customer
	// could not be looked up or merged.
	Postponed bool

	own    redisstore.Ref
	guest  redisstore.Ref // the guest's cart that came with a customer; zero for none
	budget *budget

	applied string // fingerprint of the change that guest knows under the request's key; "" for none
}

// Visit begins a call. A guest without a usable token gets a new one.
func (s *Carts) Visit(c auth.Caller) (*Visit, error) {
	v := &Visit{Store: c.Store, budget: newBudget(s.budget)}
	if c.Customer != "" {
		v.own = redisstore.CustomerRef(c.Store.ID, c.Customer)
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

// logsIn reports whether a guest's token came with a customer.
func (v *Visit) logsIn() bool { return v.guest != (redisstore.Ref{}) }
