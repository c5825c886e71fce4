package redisstore_test

import (
	"math/rand/v2"
	"time"

	"commerce/cart/carttest"
)

// randomPlan draws the plan of a random schedule.
func randomPlan(r *rand.Rand) plan {
	p := plan{
		setting: setting{
			skew:    [2]time.Duration{randomSkew(r), randomSkew(r)},
			durable: r.IntN(4) == 0, minReplicas: r.IntN(2), lines: carttest.Limits.Lines,
		},
		jumps: []time.Duration{210 * time.Millisecond, 1200 * time.Millisecond, 2 * time.Second},
		budgets: budgets{
			faults: max(0, r.IntN(5)-1), jumpsLeft: r.IntN(4), switches: -1,
		},
	}
	if r.IntN(3) == 0 {
		p.jumps = append(p.jumps, 6*time.Minute, 25*time.Hour)
	}
	switch r.IntN(9) {
	case 0, 1, 2:
		p.counted = true
		p.budgets.failovers = 1 + r.IntN(2)
	case 3, 4:
		p.setting.lines = 2
		p.counted = r.IntN(2) == 0
	case 5:
		p.counted, p.forgetful = true, true
		p.jumps = append(p.jumps, scheduleTTLs.Guest+time.Hour, scheduleTTLs.Customer+time.Hour)
	}
	p.silent = p.budgets.failovers == 0 && r.IntN(3) == 0
	p.draw(r)
	return p
}

func randomSkew(r *rand.Rand) time.Duration {
	if r.IntN(2) == 0 {
		return 0
	}
	return time.Duration(r.IntN(180_001)-90_000) * time.Millisecond
}

// draw adds the carts' base lines and the operations.
func (p *plan) draw(r *rand.Rand) {
	cast := cast{Rand: r, customers: 1 + r.IntN(5)/4, tokens: 1 + r.IntN(3)/2}
	if p.budgets.failovers > 0 {
		cast.customers = 1 // after a lost claim, another customer could claim the cart
	}
	for i := range cast.customers {
		p.lay(r, caller{customer: i, token: -1})
	}
	for i := range cast.tokens {
		p.lay(r, caller{customer: -1, token: i})
	}
	for i := range 2 + r.IntN(3) {
		p.ops = append(p.ops, cast.operation(string(rune('A'+i)), p.counted, int64(i)))
	}
}

// lay adds base lines to a cart, or none. If lines are counted, each has its own product.
func (p *plan) lay(r *rand.Rand, who caller) {
	for range r.IntN(3) {
		product := 1 + r.Int64N(3)
		if p.counted {
			product = int64(len(p.base)) + 10
		}
		p.base = append(p.base, base{who, product})
	}
}

// cast are the shoppers of a plan.
type cast struct {
	*rand.Rand
	customers, tokens int
}

func (c cast) operation(name string, counted bool, number int64) *operation {
	o := &operation{name: name, verb: adds, product: 1 + c.Int64N(3), quantity: 1 + c.Int64N(2)}
	first := c.caller()
	switch {
	case counted:
		o.product, o.quantity = number+1, 1
		if first.logsIn() && c.IntN(2) == 0 {
			o.verb = reads
		}
	default:
		o.verb = []verb{adds, adds, adds, sets, removes, clears, reads, reads}[c.IntN(8)]
	}
	o.tries = []caller{first}
	if o.verb == reads {
		return o
	}
	switch c.IntN(3) {
	case 0:
		o.key = "key-" + name
	case 1:
		o.stamp = "stamp-" + name
	default:
		return o
	}
	for range 1 + c.IntN(2) {
		again := o.tries[len(o.tries)-1]
		// A guest who has logged in since. If two customers share the token, the other
		// one's merge may include the first try: its key is still known there, but its
		// stamp is not.
		if again.customer < 0 && (c.customers == 1 || o.key != "") && c.IntN(2) == 0 {
			again.customer = c.IntN(c.customers)
		}
		o.tries = append(o.tries, again)
	}
	return o
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
