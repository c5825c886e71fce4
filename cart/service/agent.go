package service

import (
	"context"

	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
)

// Agent is who makes an agent's call.
type Agent struct {
	Store   *store.Store
	Client  string // that the call counts for
	Profile string // the URL of its platform's profile
}

// AgentVisit is one call of an agent, to the guest's cart that an ID opens. The cart's token is derived from the
// ID, so an ID is no token.
type AgentVisit struct {
	*Visit
	ID string
}

// AgentCart is a cart as an agent's call has left it.
type AgentCart struct {
	cart.Priced
	ID         string  // that opens it
	Moved      bool    // it is empty, because the shopper has taken the cart over
	Created    bool    // an AgentCreate has stored it
	Faults     []Fault // what could not be applied
	Durability string  // as in Changed
}

// Fault is a part of a request that could not be applied.
type Fault struct {
	Element int  // of the cart.Replacement; -1 for none
	Coupon  bool // it is the coupon
	Problem *problem.Error
}

// AgentVisit begins a call to the cart of an ID as the agent sent it. It reports false if it is no ID of this service.
func (s *Carts) AgentVisit(a Agent, id string) (*AgentVisit, bool) { panic("TODO") }

// NewAgentVisit begins a call that creates a cart. With a key, as the agent sent it, the ID is derived from store, profile and
// key, so that a retry meets the cart of its first attempt.
func (s *Carts) NewAgentVisit(a Agent, key string) *AgentVisit { panic("TODO") }

// Once makes a keyed call once. It runs do unless the first result of the key is kept; it keeps that of do for 24 hours,
// and returns it byte for byte. An error of do is no result: the next attempt runs again. key and fingerprint
// are the digests that do has in its Conditions; without a key, Once only runs do.
func (s *Carts) Once(ctx context.Context, v *AgentVisit, key, fingerprint string, do func(context.Context) ([]byte, error)) ([]byte, error) {
	panic("TODO")
}

// AgentRead returns the cart. An ID under which there is none, or a canceled one, is a problem.NotFound.
func (s *Carts) AgentRead(ctx context.Context, v *AgentVisit) (AgentCart, error) { panic("TODO") }

// AgentCreate stores a cart with those elements that can be bought. If none can, it stores nothing, and the cart is not Created.
func (s *Carts) AgentCreate(ctx context.Context, v *AgentVisit, on Conditions, r cart.Replacement) (AgentCart, error) {
	panic("TODO")
}

// AgentReplace replaces the lines of the cart in one step, as far as they can be bought. With cart.ErrChangedUnseen,
// nothing was changed, and the cart is as it is now. A client's If-Match that names another version is a problem.VersionMismatch.
func (s *Carts) AgentReplace(ctx context.Context, v *AgentVisit, on Conditions, r cart.Replacement) (AgentCart, error) {
	panic("TODO")
}

// AgentCancel ends the cart, and returns it as it was. ids are those of lines that the agent sent, if any. It fails like AgentReplace.
func (s *Carts) AgentCancel(ctx context.Context, v *AgentVisit, on Conditions, ids ...string) (AgentCart, error) {
	panic("TODO")
}
