package redisstore_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"commerce/cart/carttest"
	"commerce/cart/transfer"
)

func randomPlan(r *rand.Rand) plan {
	p := plan{
		setting: setting{
			skew:    [2]time.Duration{randomSkew(r), randomSkew(r)},
			durable: r.IntN(4) == 0, remembers: r.IntN(2) == 0, minReplicas: r.IntN(2), lines: carttest.Limits.Lines,
			strategy: []transfer.Strategy{transfer.Sum, transfer.Sum, transfer.Max, transfer.KeepGuest, transfer.KeepCustomer}[r.IntN(5)],
		},
		jumps: []time.Duration{210 * time.Millisecond, 1200 * time.Millisecond, 2 * time.Second},
		hasty: r.IntN(4) == 0, tardy: r.IntN(4) == 0,
		budgets: budgets{
			faults: max(0, r.IntN(5)-1), jumpsLeft: r.IntN(4), switches: -1, stalls: -1,
		},
	}
	if r.IntN(3) == 0 {
		p.setting.ahead = []time.Duration{-clocksDiffer, clocksDiffer}[r.IntN(2)]
	}
	if r.IntN(3) == 0 {
		p.jumps = append(p.jumps, 6*time.Minute, 25*time.Hour)
	}
	switch r.IntN(9) {
	case 0, 1, 2:
		p.counted = true
		p.budgets.failovers = 1 + r.IntN(3)
	case 3, 4:
		p.setting.lines = 1 + r.Int64N(2)
		p.counted = r.IntN(2) == 0
	case 5:
		p.counted, p.forgetful = true, true
		p.jumps = append(p.jumps, usualTTLs.Guest+time.Hour, usualTTLs.Customer+time.Hour)
	}
	p.silent = p.budgets.failovers == 0 && r.IntN(3) == 0
	p.draw(r)
	return p
}

const clocksDiffer = 2 * time.Second // between the guests' Redis and the customers', in some schedules

// randomSkew returns no skew, the skew of badly synchronized clocks, or that of wrong clocks.
func randomSkew(r *rand.Rand) time.Duration {
	limit := []int{0, 0, 90_000, 900_000}[r.IntN(4)]
	return time.Duration(r.IntN(2*limit+1)-limit) * time.Millisecond
}

func (p *plan) draw(r *rand.Rand) {
	cast := cast{Rand: r, plan: p, narrow: r.IntN(3) == 0, customers: 1 + r.IntN(5)/4, tokens: 1 + r.IntN(3)/2}
	if p.budgets.failovers > 0 {
		cast.customers = 1 // after a lost claim, another customer could claim the cart
	}
	for i := range cast.customers {
		p.lay(r, caller{customer: i, token: -1})
	}
	for i := range cast.tokens {
		p.lay(r, caller{customer: -1, token: i})
	}
	kind := r.IntN(9)
	hands, shared := kind < 3, kind >= 7
	if hands && p.budgets.failovers > 0 {
		cast.tokens = 1 // after a lost claim, somebody else could take the cart: nobody but one operation does
		p.lay(r, caller{customer: -1, token: 1})
	}
	others := 2 + r.IntN(3)
	if shared {
		others = r.IntN(3)
	}
	for range others {
		p.add(cast.operation(int64(len(p.ops))), cast)
	}
	switch {
	case hands:
		p.drawTakes(cast)
	case shared:
		p.drawShares(cast)
	case kind < 5:
		p.drawUndos(cast)
	}
	if r.IntN(5) == 0 {
		p.drawFollower(cast)
	}
}

func (p *plan) add(o *operation, cast cast) {
	o.name = string(rune('A' + len(p.ops)))
	cast.repeat(o)
	p.ops = append(p.ops, o)
}

// drawTakes draws operations that take a guest's cart, and one of somebody whom they have given a token.
func (p *plan) drawTakes(c cast) {
	from := c.IntN(c.tokens)
	if p.budgets.failovers > 0 {
		from = 1
	}
	if !slices.ContainsFunc(p.base, func(b base) bool { return b.who == caller{-1, from} }) {
		return // there is nothing to hand over
	}
	n := 1
	if p.budgets.failovers == 0 {
		n += c.IntN(modelMakers)
	}
	for maker := range n {
		later := maker > 0 && !p.counted && c.IntN(2) == 0
		if later && c.IntN(2) == 0 {
			from = modelTokens // the cart that the other one has taken
		}
		o := &operation{verb: takes, later: later, maker: maker, from: from, agent: c.IntN(2) == 0, insists: c.IntN(3) == 0, tries: []caller{c.taker()}}
		for range c.IntN(3) {
			again := o.tries[0]
			if p.budgets.failovers == 0 && c.IntN(4) == 0 { // after a lost claim, it is taken again
				again = c.taker()
			}
			o.tries = append(o.tries, again)
		}
		p.add(o, c)
	}
	if agent := p.ops[len(p.ops)-n].from; len(p.ops) <= 4 && !p.counted && p.setting.lines == carttest.Limits.Lines && c.IntN(2) == 0 {
		p.drawAgent(c, caller{-1, agent})
	}
	o := c.operation(int64(len(p.ops)))
	o.tries[0].token = modelTokens + c.IntN(n)
	if o.verb == erases {
		return
	}
	p.add(o, c)
}

// drawAgent draws what the agent of a token does.
func (p *plan) drawAgent(c cast, who caller) {
	p.add(&operation{verb: browses, tries: []caller{who}}, c)
	o := order("", []caller{who, who, who}[:1+c.IntN(3)]...)
	o.product, o.quantity, o.insists = 1+c.Int64N(2), 1+c.Int64N(3), c.IntN(2) == 0
	p.add(&o, c)
}

func (c cast) taker() caller {
	if c.IntN(3) == 0 {
		return caller{-1, -1}
	}
	if c.plan.budgets.failovers > 0 { // the tries of a guest may choose two carts, and a failover lose the claim of one
		return caller{c.IntN(c.customers), -1}
	}
	return c.caller()
}

// lay adds base lines to a cart, or none. If lines are counted, each has its own product.
func (p *plan) lay(r *rand.Rand, who caller) {
	for range min(r.Int64N(3), p.setting.lines) {
		b := base{who: who, product: 1 + r.Int64N(modelProducts)}
		if p.counted {
			b = base{who: who, product: int64(len(p.base)) + firstBase, label: rarely(r, 2)}
			if len(p.base) == 0 {
				b.country = rarely(r, 2)
			}
			p.base = append(p.base, b)
			continue
		}
		b.label, b.country = rarely(r, 4), rarely(r, 6)
		b.engraved = b.product == engravable && r.IntN(2) == 0
		b.notice = rarely(r, 4)
		b.coupon = rarely(r, 4)
		p.base = append(p.base, b)
	}
}

const firstBase = 20 // operations have up to 12

// rarely returns a letter for a notice or a coupon once in n times, and otherwise 0 for none.
func rarely(r *rand.Rand, n int) byte {
	if r.IntN(n) > 0 {
		return 0
	}
	return "12"[r.IntN(2)]
}

type cast struct {
	*rand.Rand
	plan              *plan
	narrow            bool // all requests are about the lines of one product
	customers, tokens int
}

func (c cast) operation(number int64) *operation {
	o := &operation{tries: []caller{c.caller()}}
	if c.plan.counted {
		c.count(o, number)
		return o
	}
	o.verb = []verb{adds, adds, adds, adds, sets, sets, edits, edits, edits, removes, clears, redeems, labels, locates, reads, reads, reads}[c.IntN(17)]
	o.product, o.quantity = 1+c.Int64N(modelProducts), 1+c.Int64N(2)
	if c.narrow {
		o.product = engravable
	}
	o.checks = o.verb != reads && c.IntN(8) == 0
	switch o.verb {
	case adds:
		o.engraved = o.product == engravable && c.IntN(2) == 0
		o.notice, o.label = rarely(c.Rand, 4), rarely(c.Rand, 4)
	case sets:
		o.quantity = c.Int64N(3)
	case edits:
		if c.IntN(2) == 0 {
			o.product = engravable
		}
		o.engraved = o.product == engravable && c.IntN(2) == 0
		o.quantity = max(0, c.Int64N(5)-2)
		o.renotes = o.product != engravable || c.IntN(3) == 0
		o.notice = rarely(c.Rand, 1)
		if !o.renotes || c.IntN(3) == 0 {
			o.notice = 0
		}
		o.label = "\x00\x00\x00012"[c.IntN(6)]
	case labels, locates:
		c.describe(o)
	case redeems:
		o.coupon = "\x0012"[c.IntN(3)]
	}
	if o.verb != reads && c.plan.setting.lines == carttest.Limits.Lines && c.IntN(3) == 0 {
		o.verb, o.each = lists, c.IntN(2) == 0
		for range 1 + c.IntN(3) {
			o.list = append(o.list, c.listed())
		}
	}
	return o
}

// describe draws what an operation says of the cart.
func (c cast) describe(o *operation) {
	o.product = min(o.product, modelLabels)
	o.label = "012"[c.IntN(3)]
	o.country = "\x0012ab"[c.IntN(5)]
}

func (c cast) listed() *operation {
	o := &operation{
		verb:    []verb{adds, adds, sets, sets, edits, removes, clears, labels, locates}[c.IntN(9)],
		product: 1 + c.Int64N(modelProducts), quantity: 1 + c.Int64N(2), notice: rarely(c.Rand, 2),
	}
	if o.verb == labels || o.verb == locates {
		c.describe(o)
		return o
	}
	if c.narrow {
		o.product = engravable
	}
	o.engraved = o.product == engravable && c.IntN(2) == 0
	if o.verb == sets {
		o.quantity = c.Int64N(3)
	}
	return o
}

// count makes an operation one that a plan can count: each add has its own product, and
// edits keep the quantity.
func (c cast) count(o *operation, number int64) {
	o.verb, o.product, o.quantity = adds, number+1, 1
	first := &o.tries[0]
	switch n := c.IntN(8); {
	case first.logsIn() && n < 4:
		o.verb = reads
	case n == 4 && c.plan.forgetful:
		o.verb, *first, c.plan.silent = erases, first.owner(), false
	case n == 5 && (first.customer >= 0 || c.plan.budgets.failovers == 0):
		// After a lost claim, both a guest's edited line and its former state would be merged.
		o.verb, o.product, o.quantity, o.engraved = edits, firstBase+c.Int64N(4), 0, c.IntN(4) > 0
	}
}

func (c cast) repeat(o *operation) {
	if o.verb == reads || o.verb >= erases {
		return
	}
	switch c.IntN(3) {
	case 0:
		o.key = "key-" + o.name
	case 1:
		o.stamp = "stmp-" + o.name // of cart.StampSize
	default:
		return
	}
	o.insists = c.plan.budgets.failovers == 0 && c.IntN(3) == 0
	for range 1 + c.IntN(2) {
		again := o.tries[len(o.tries)-1]
		// A guest who has logged in since.
		if again.customer < 0 && c.IntN(2) == 0 {
			again.customer = c.IntN(c.customers)
			if o.insists && o.key != "" && c.customers == 1 && c.tokens == 1 && c.IntN(2) == 0 {
				again.token = -1
			}
		}
		o.tries = append(o.tries, again)
	}
}

func (c cast) caller() caller {
	customer, token := c.IntN(c.customers), c.IntN(c.tokens)
	switch c.IntN(5) {
	case 0, 1:
		return caller{customer: -1, token: token}
	case 2:
		return caller{customer: customer, token: -1}
	}
	return caller{customer: customer, token: token}
}
