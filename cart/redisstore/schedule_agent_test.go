package redisstore_test

import (
	"context"
	"errors"
	"slices"

	"commerce/cart/redisstore"
	"commerce/cart/service"
	"commerce/cart/ucp/agent"
)

// actAsAgent makes the call of an agent whose ID opens the token's cart, as package ucp makes it.
func (a *request) actAsAgent(ctx context.Context) {
	agents := agent.New(a.service.Carts)
	v, _ := agents.Visit(agent.Agent{Store: a.schedule.store}, agentID(a.who.token))
	var answer agent.Cart
	if a.op.verb == browses {
		answer, a.result.err = agents.Read(ctx, v)
	} else {
		on := redisstore.Conditions{Key: a.op.key, Fingerprint: "request-" + a.op.name}
		a.result.replayed = true
		kept, err := agents.Once(ctx, v, on.Key, on.Fingerprint, func(ctx context.Context) (_ []byte, err error) {
			a.result.replayed = false
			answer, err = agents.Replace(ctx, v, on, agent.Replacement{Elements: []agent.Element{
				{ID: a.op.shown(a.op.item()), Product: a.op.product, Quantity: a.op.quantity},
			}})
			if errors.Is(err, agent.ErrChangedUnseen) {
				return []byte(unseen), nil
			}
			return []byte(answer.Cart.Tag()), err
		})
		if a.result.kept, a.result.err = string(kept), err; a.result.kept == unseen {
			a.result.err = service.ErrVersionMismatch
		}
	}
	if a.result.err == nil && !a.dead && !a.result.replayed {
		a.result.cart = answer.Cart
		a.schedule.shown[a.who.token] = agents.ShownIDs(answer)
	}
}

// unseen is the answer that refuses a change for what its agent has not seen.
const unseen = "unseen"

// agentEvents notes when the order of an agent takes effect once, and what the answers show.
func (o *operation) agentEvents(set *setting, note func(e *event, call, end int64)) {
	told := int64(never)
	for _, a := range o.attempts {
		r := a.result
		if r.unknown() {
			continue
		}
		if r.refused() != "" {
			note(&event{op: o, setting: set, shows: &reply{refused: r.refused()}}, a.call, a.end)
			continue
		}
		told = min(told, a.end)
		if !r.replayed {
			note(&event{op: o, setting: set, shows: &reply{cart: contentsOf(r.cart)}}, a.call, a.end)
		}
	}
	maybe := slices.ContainsFunc(o.attempts, func(a *request) bool { return !a.effectless() })
	if o.verb == orders && maybe {
		note(&event{op: o, setting: set, as: o.agents(), optional: told == never}, o.attempts[0].call, told)
	}
}

// agents are the tokens whose carts the ID of an agent may open.
func (o *operation) agents() (all callers) {
	all.add(o.tries[0])
	for _, take := range o.attempts[0].schedule.taken() {
		if take != nil && take.agent && take.from == o.tries[0].token {
			all.add(caller{-1, take.freshToken()})
		}
	}
	return all
}

// allowsAgent reports whether an agent may see what the answer shows, or be refused: not after its order has taken effect, unless the
// cart has been handed over again, where no agent follows.
func (e *event) allowsAgent(c *carts) bool {
	if e.shows.refused != "" {
		again := slices.ContainsFunc(e.taken[:], func(o *operation) bool { return o != nil && o.from >= modelTokens })
		return !c.ordered || e.op.verb == browses || again
	}
	return slices.ContainsFunc(e.op.agents(), func(who caller) bool { return *c.of(who) == e.shows.cart })
}
