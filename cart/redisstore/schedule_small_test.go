package redisstore_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"commerce/cart/carttest"
	"commerce/cart/transfer"
	"commerce/deploy/ephemeral"
)

var switches = flag.Int("switches", 1, "how often a small scenario switches to another request while the current one could continue; negative for no limit")

var (
	guestT1 = caller{customer: -1, token: 0}
	c1      = caller{customer: 0, token: -1}
	c1t1    = caller{customer: 0, token: 0}
	c2t1    = caller{customer: 1, token: 0}
	guestT2 = caller{customer: -1, token: 1}
	c1t2    = caller{customer: 0, token: 1}
	nobody  = caller{customer: -1, token: -1}
	c1Fresh = caller{customer: 0, token: modelTokens}

	c1Undone = caller{customer: 0, token: modelTokens}
	c2Undone = caller{customer: 1, token: modelTokens}
)

// smallScenarios run with a fault at every step, and up to -switches switches between requests.
var smallScenarios = map[string][]operation{
	"two devices log in":                                    {login("A", c1t1), login("B", c1t1)},
	"two customers log in with one token":                   {login("A", c1t1), login("B", c2t1)},
	"a guest adds during a login":                           {login("A", c1t1), addOne("B", "", guestT1)},
	"a guest adds with a key, and repeats it after a login": {login("A", c1t1), addOne("B", "key-B", guestT1, c1t1)},
	"a customer adds with a key during a login":             {login("A", c1t1), addOne("B", "key-B", c1, c1)},
	afterMinutes:                                                    {login("A", c1t1), {name: "B", verb: reads, tries: []caller{c1}}},
	"a guest adds between two logins":                               {login("A", c1t1), addOne("B", "", guestT1), login("C", c1t1)},
	"a guest adds between two customers' logins":                    {login("A", c1t1), addOne("B", "", guestT1), login("C", c2t1)},
	"a customer edits a line so that it is like one of the guest's": {login("A", c1t1), {name: "B", verb: edits, product: 3, engraved: true, tries: []caller{c1}}},
	"a guest edits a line, and repeats it after a login":            {login("A", c1t1), {name: "B", verb: edits, product: 3, key: "key-B", tries: []caller{guestT1, c1t1}}},
	"a customer redeems a coupon during a login":                    {login("A", c1t1), {name: "B", verb: redeems, coupon: '2', tries: []caller{c1}}},
	"a customer changes the version that they saw, during a login":  {login("A", c1t1), {name: "B", verb: sets, product: 3, quantity: 2, checks: true, tries: []caller{c1}}},
	"a customer clears during a login":                              {login("A", c1t1), {name: "B", verb: clears, tries: []caller{c1t1}}},
	"a code is redeemed twice by its redeemer":                      {take("A", 0, nobody, nobody)},
	"two redeem a code":                                             {take("A", 0, nobody), take("B", 1, c1)},
	"a code is redeemed during a login of its maker":                {login("A", c1t1), take("B", 0, nobody)},
	"its maker adds while a code is redeemed":                       {take("A", 0, nobody, nobody), addOne("B", "", guestT1)},
	"a code is redeemed into the cart of a guest, who logs in":      {take("A", 0, guestT2), login("B", c1t2)},
	"the redeemer of a code has logged in when the answer is lost":  {take("A", 0, nobody, c1)},
	"the redeemer of a code logs in":                                {take("A", 0, nobody), login("B", c1Fresh)},
	"a merge is undone, and again":                                  {undo("A", c1, c1)},
	"a merge is undone while a lost answer is asked for":            {undo("A", c1, c1, c1)},
	"a customer adds to a line that is taken out":                   {undo("A", c1, c1), addOne("B", "", c1)},
	"a customer edits a line that is taken out":                     {undo("A", c1), {name: "B", verb: edits, product: 3, engraved: true, tries: []caller{c1}}},
	"a customer clears while a merge is undone":                     {undo("A", c1, c1), {name: "B", verb: clears, tries: []caller{c1}}},
	"a merge is undone during another login":                        {undo("A", c1, c1), login("B", c1t2)},
	"a merge is undone by a request that merges another cart":       {undo("A", c1t2, c1)},
	"a customer logs in with the token that their undo has made":    {undo("A", c1), login("B", c1Undone)},
	"another one logs in with the token that an undo has made":      {undo("A", c1, c1), login("B", c2Undone)},
	"a guest adds to the cart that an undo has made":                {undo("A", c1, c1), addOne("B", "", caller{-1, modelTokens})},
	"an agent orders while its cart is handed over": {
		{name: "A", verb: browses, tries: []caller{guestT1}}, order("B", guestT1, guestT1), {name: "C", verb: takes, agent: true, tries: []caller{nobody}},
	},
	"an agent orders minutes after its cart was handed over": {
		{name: "A", verb: browses, tries: []caller{guestT1}}, {name: "B", verb: takes, agent: true, tries: []caller{nobody}}, again(order("C", guestT1, guestT1)),
	},
	"a share is made again while it is deleted":                    shareOf(guestT1, guestT1, guestT1),
	"a guest's share is made again while the customer deletes it":  shareOf(c1t1, guestT1, guestT1),
	"a customer deletes the share of a cart that was emptied":      append(shareOf(c1t1, guestT1), operation{name: "C", verb: lists, list: []*operation{{verb: clears, product: 1}, {verb: locates, product: 1}}, tries: []caller{guestT1}}),
	"two share while there is room for one":                        append(shareOf(guestT1, guestT1), operation{name: "C", verb: shares, key: "another key", tries: []caller{guestT1, guestT1}}),
	"a guest's cart is followed during a login":                    {follow("A", guestT1, guestT1), login("B", c1t1)},
	"a customer's cart is followed while it is merged, and undone": {follow("A", c1, c1), undo("B", c1t2)},
	"two guests redeem codes of each other's carts":                {take("A", 0, guestT2), {name: "B", verb: takes, maker: 1, from: 1, agent: true, tries: []caller{guestT1}}},
}

// smallFailovers run with as many switches, and at every step a failover of either shard to a replica that lacks recent writes.
var smallFailovers = map[string][]operation{
	"a master fails over during a login":                            {login("A", c1t1)},
	"a master fails over while two devices log in":                  {login("A", c1t1), login("B", c1t1)},
	"a master fails over while a guest adds during a login":         {login("A", c1t1), addLine("B", 2, "", guestT1)},
	"a master fails over while a customer adds with a key":          {login("A", c1t1), addLine("B", 2, "key-B", c1, c1)},
	"a master fails over while a guest adds, and repeats it later":  {addLine("A", 1, "key-A", guestT1, c1t1)},
	"a master fails over while a code is redeemed":                  {take("A", 0, nobody, nobody)},
	"a master fails over while a code is redeemed, and guests add":  {take("A", 0, nobody), addLine("B", 2, "", guestT1)},
	"a master fails over while a merge is undone, and then another": {undo("A", c1, c1)},
	"a master fails over while a cart is shared, and not any more":  shareOf(c1, c1, c1),
	"a master fails over while a cart is followed":                  {follow("A", c1, c1), addLine("B", 2, "", c1)},
}

// afterMinutes is a scenario in which the customer never sends the token again. In those with minutes in their names, the clock may jump.
const afterMinutes = "a customer returns after minutes, without the token"

func login(name string, who caller) operation {
	return operation{name: name, verb: reads, tries: []caller{who}}
}

func take(name string, number int, tries ...caller) operation {
	return operation{name: name, verb: takes, maker: number, insists: len(tries) > 1, tries: tries}
}

func follow(name string, tries ...caller) operation {
	return operation{name: name, verb: follows, tries: tries}
}

// shareOf shares a cart, and deletes the share as another caller.
func shareOf(deletes caller, tries ...caller) []operation {
	return []operation{
		{name: "A", verb: shares, key: "key of a share", insists: true, tries: tries},
		{name: "B", verb: unshares, tries: []caller{deletes}},
	}
}

func order(name string, tries ...caller) operation {
	return operation{name: name, verb: orders, product: 1, quantity: 2, key: "agents-key", tries: tries}
}

// again is an operation whose client repeats it after an answer, too.
func again(o operation) operation {
	o.insists = true
	return o
}

func undo(name string, tries ...caller) operation {
	return operation{name: name, verb: undoes, insists: len(tries) == 2, tries: tries}
}

func addOne(name, key string, tries ...caller) operation { return addLine(name, 1, key, tries...) }

func addLine(name string, product int64, key string, tries ...caller) operation {
	return operation{name: name, verb: adds, product: product, quantity: 1, key: key, tries: tries}
}

func TestSchedules_OfSmallScenarios(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(smallScenarios)), slices.Sorted(maps.Keys(smallFailovers))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := newRuns(t)
			run.worker(func(w *scheduler) { t.Log(run.inTurn(w, name), "schedules") })
			run.Wait()
		})
	}
}

func (r *runs) inTurn(w *scheduler, name string) (n int) {
	c := &inTurn{}
	for {
		run := func(tells bool) judged { return w.run(smallPlan(name), c.begin(), tells) }
		r.report(fmt.Sprintf("schedule %d", n), run(false), func() judged { return run(true) })
		n++
		if !c.next() || r.enough() {
			return n
		}
	}
}

func smallPlan(name string) plan {
	p := plan{
		setting: setting{lines: carttest.Limits.Lines, strategy: transfer.Sum},
		base:    []base{{who: guestT1, product: 1, label: '1', country: '1'}, {who: guestT1, product: 3, engraved: true, coupon: '1'}, {who: c1, product: 3}},
		budgets: budgets{faults: 1, switches: *switches},
	}
	ops, fails := smallFailovers[name]
	if fails {
		p.counted, p.base = true, []base{{who: guestT1, product: firstBase, label: '1', country: '1'}, {who: guestT1, product: firstBase + 1}, {who: c1, product: firstBase + 2}}
		p.budgets = budgets{failovers: 1, stalls: 1, switches: *switches}
		if len(ops) == 1 && len(ops[0].tries) == 1 {
			p.budgets.faults = 1
		}
	} else {
		ops = smallScenarios[name]
	}
	for _, op := range ops {
		p.ops = append(p.ops, &op)
		if op.verb == unshares {
			op.made = p.ops[0]
		}
		if op.verb == shares && op.name == "C" {
			p.shared = maxShares - 1
		}
		p.merged = p.merged || op.verb == undoes
		if slices.Contains(op.tries, guestT2) {
			p.base = append(p.base, base{who: guestT2, product: 2})
		}
	}
	if len(p.ops) > 2 {
		p.budgets.switches--
	}
	p.silent = name == afterMinutes
	if strings.Contains(name, "minutes") {
		p.jumps, p.jumpsLeft = []time.Duration{6 * time.Minute}, 1
	}
	return p
}
