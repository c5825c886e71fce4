package redisstore_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/redisstore"
)

type ending struct {
	carts map[string]cart.Cart // by key
	wrong []string             // what should not be there
}

func (s *schedule) ending() ending {
	e := ending{carts: map[string]cart.Cart{}}
	for _, key := range s.found {
		short := strings.Replace(key.key, fmt.Sprintf("{%d:", s.store.ID), "{", 1)
		if key.left < 0 {
			e.complain("%s has no TTL", short)
		}
		if strings.HasSuffix(key.key, ":claimed") && s.plan.forgetful && s.taken()[0] != nil { // the cart that has got the lines expires first
			s.tried["claims that outlive their cart"]++
		} else if strings.HasSuffix(key.key, ":claimed") {
			e.complain("%s still exists", short)
		}
		if strings.HasSuffix(key.key, "}") && !s.unknownToAll(key) && !key.isCopy() {
			s.read(&e, short, key)
		}
	}
	return e
}

func (s *schedule) read(e *ending, short string, key stored) {
	held, err := redisstore.ParseCart(key.members)
	if err != nil {
		e.complain("%s: %v", short, err)
	}
	c := held.Cart
	if key.count("m") > 0 {
		e.complain("%s still has a note", short)
	}
	if c.ID == "" && key.count("0123456789cx") > 0 {
		e.complain("%s has no id, but %q", short, key.members)
	}
	if says, ok := key.expiry(); ok {
		late := says.Sub(s.memory.now(shardOf(key.key))) - key.left
		if late.Abs() > expirySlack {
			e.complain("%s expires %v before what it says", short, late)
		}
	}
	for _, l := range c.Lines {
		if l.Quantity < 1 || l.Quantity > carttest.Limits.Quantity {
			e.complain("%s holds %s×%d", short, l.ID, l.Quantity)
		}
	}
	if maximum := 2 * s.plan.setting.lines; int64(len(c.Lines)) > maximum {
		e.complain("%s holds %d lines, want at most %d", short, len(c.Lines), maximum)
	}
	e.carts[key.key] = c
}

// expirySlack allows for jumps of the clock: each jump rounds the expiry down to a second.
const expirySlack = time.Minute

func (k stored) expiry() (at time.Time, ok bool) {
	seconds, err := strconv.ParseInt(k.member("x"), 10, 64)
	return time.Unix(seconds, 0), err == nil
}

func (e *ending) complain(format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Sprintf(format, args...))
}

// check returns what is wrong after a schedule; nil when it is correct.
func (s *schedule) check() []string {
	e := s.ending()
	wrong := append(e.wrong, s.checkUndos()...)
	if s.plan.counted {
		wrong = append(wrong, s.countLines(e)...)
	} else {
		wrong = append(wrong, s.checkHistory(e)...)
	}
	if !s.failedOver() {
		wrong = append(wrong, s.checkRepeats()...)
	}
	wrong = append(wrong, s.checkVersions()...)
	wrong = append(append(wrong, s.checkConditions()...), s.checkTokens(e)...)
	return append(append(wrong, s.checkFollowers()...), s.checkShares()...)
}

func (s *schedule) failedOver() bool {
	return s.shards[guestShard].failovers+s.shards[customerShard].failovers > 0
}

func (s *schedule) countLines(e ending) (wrong []string) {
	count, buyers := map[int64]int64{}, int64(0)
	for _, c := range e.carts {
		for name := range c.Metadata {
			number, _ := strconv.ParseInt(strings.TrimPrefix(name, "M"), 10, 64)
			count[-number]++
		}
		if c.Buyer.Country != "" {
			buyers++
		}
		for _, l := range c.Lines {
			count[l.ID.Product()] += l.Quantity
		}
	}
	judge := func(what string, product int64, minimum, maximum int64) {
		if ops := s.undos(); len(ops) > 0 && ops[0].mayBeForgotten() && count[product] > maximum { // a login after the erasure of what was offered
			s.tried["lines erased beside their undo"]++
			maximum++
		}
		if n := count[product]; n < minimum || n > maximum {
			wrong = append(wrong, fmt.Sprintf("%s counts %d times, want %d to %d", what, n, minimum, maximum))
		}
	}
	for _, b := range s.plan.base {
		judge(fmt.Sprintf("the base line %d", b.product), b.product, s.atLeast(true), 1)
		if b.label != 0 {
			judge(fmt.Sprintf("the label %d", b.product), -b.product, s.atLeast(true), 1)
		}
		if b.country != 0 {
			count[0] = buyers
			judge("the buyer", 0, s.atLeast(true), 1)
		}
	}
	for _, op := range s.ops {
		if op.verb == adds {
			most := op.possible()
			if count[op.product] > most && s.movesLost(op) {
				most++
			}
			judge("the add "+op.name, op.product, s.atLeast(op.kept(s)), most)
		}
	}
	return wrong
}

// movesLost reports whether a guest's add was repeated after a failover had lost it, although a merge under way then may bring it along:
// docs/guarantees.md, promise 9.
func (s *schedule) movesLost(o *operation) bool {
	lost := slices.ContainsFunc(o.attempts[:len(o.attempts)-1], func(a *request) bool { return a.who.customer < 0 && s.mayLose(guestShard, a) })
	for a := range s.requests() {
		if lost && a.moves(o.tries[0].token) && s.mayLose(guestShard, a) {
			s.tried["adds that a merge and a retry bring after a failover"]++
			return true
		}
	}
	return false
}

// checkRepeats checks that no operation was carried out twice. A cart that was never used
// remembers no requests.
func (s *schedule) checkRepeats() (wrong []string) {
	for _, op := range s.ops {
		n := 0
		for _, a := range op.attempts {
			if r := a.result; !r.unknown() && r.refused() == "" && !r.replayed && r.cart.ID != "" {
				n++
			}
		}
		for _, a := range op.attempts {
			if i := slices.IndexFunc(op.attempts, func(first *request) bool { return first.result.kept != "" }); a.result.kept != "" && a.result.kept != op.attempts[i].result.kept {
				wrong = append(wrong, fmt.Sprintf("%s has the result %q, an earlier answer %q", a, a.result.kept, op.attempts[i].result.kept))
			}
			if told := a.result.outcomes; told != nil && op.key != "" && !op.mayRepeat() && !slices.Equal(told, op.outcomes()) {
				wrong = append(wrong, fmt.Sprintf("%s tells the outcomes %q, an earlier answer %q", a, told, op.outcomes()))
			}
		}
		if op.remembered() != "" && n > 1 && !op.mayRepeat() {
			wrong = append(wrong, fmt.Sprintf("%s was carried out %d times", op.name, n))
		}
	}
	return wrong
}

func (o *operation) outcomes() []problem.Code {
	for _, a := range o.attempts {
		if a.result.outcomes != nil {
			return a.result.outcomes
		}
	}
	return nil
}

func (s *schedule) checkConditions() (wrong []string) {
	for a := range s.requests() {
		r := a.result
		if !a.op.checks || r.unknown() || r.replayed {
			continue
		}
		now, want := etagOf(r.cart), a.op.ifMatch
		made := now.version == want.version+1 && (now.id == want.id || want.id == "")
		switch {
		case r.refused() == "" && now != want && !made:
			wrong = append(wrong, fmt.Sprintf("%s changed version %v to %v", a, want, now))
		case r.refused() == problem.VersionMismatch && now == want:
			wrong = append(wrong, fmt.Sprintf("%s was refused although the cart had version %v", a, want))
		}
	}
	return wrong
}

// atLeast returns 1 for what must not be lost, unless carts may have expired.
func (s *schedule) atLeast(kept bool) int64 {
	if kept && !s.plan.forgetful && s.forgotten() == [modelMakers]bool{} {
		return 1
	}
	return 0
}

// kept reports whether an add was acknowledged, and no failover may have lost it.
func (o *operation) kept(s *schedule) bool {
	acknowledged, lost := false, false
	for _, a := range o.attempts {
		lost = lost || a.mayBeLost(s)
		r := a.result
		if r.unknown() || r.refused() != "" {
			continue
		}
		if r.durability == "confirmed" {
			return true
		}
		acknowledged = true
	}
	if acknowledged && lost {
		s.tried["adds that a failover may lose"]++
	}
	return acknowledged && !lost
}

// mayBeLost reports whether the request may have written to its shard while the replica lagged
// that replaced the master later. What it wrote before or after that is not lost.
func (a *request) mayBeLost(s *schedule) bool {
	return s.mayLose(a.who.shard(), a)
}

func (s *schedule) mayLose(sh shard, a *request) bool {
	return slices.ContainsFunc(s.shards[sh].lost, func(l span) bool { return a.call <= l.to && a.leaves(l.from) })
}

func (o *operation) possible() (n int64) {
	for _, a := range o.attempts {
		if !a.effectless() {
			n += 1 + int64(a.twice)
		}
	}
	if o.mayRepeat() {
		return n
	}
	return min(n, 1)
}

// checkVersions checks that one tag never stands for two contents, and that no request sees an
// older version than one that ended before it began, unless a failover took versions back.
func (s *schedule) checkVersions() (wrong []string) {
	answers := slices.DeleteFunc(slices.Collect(s.requests()), func(a *request) bool { return a.result.cart.ID == "" })
	for _, first := range answers {
		for _, then := range answers {
			old, now := first.result.cart, then.result.cart
			if old.Tag() == now.Tag() && (old.Buyer != now.Buyer || !maps.Equal(old.Metadata, now.Metadata) || !slices.Equal(old.Coupons, now.Coupons) || !slices.EqualFunc(old.Lines, now.Lines, likeLine)) {
				wrong = append(wrong, fmt.Sprintf("%s and %s saw different carts with the tag %s", first, then, now.Tag()))
			}
			if s.failedOver() || s.plan.forgetful {
				continue
			}
			if first.end < then.call && first.result.cart.ID == then.result.cart.ID &&
				first.result.cart.Version > then.result.cart.Version {
				wrong = append(wrong, fmt.Sprintf("%s saw version %d after %s saw version %d of the same cart",
					then, then.result.cart.Version, first, first.result.cart.Version))
			}
		}
	}
	return wrong
}

func likeLine(a, b cart.Line) bool {
	return a.ID == b.ID && a.Quantity == b.Quantity && a.AddedPrice == b.AddedPrice && a.Notice == b.Notice && maps.Equal(a.Metadata, b.Metadata) && slices.Equal(a.Fields, b.Fields)
}

// checkTokens checks that the cart of a token that is sent was merged, if there is room.
func (s *schedule) checkTokens(e ending) (wrong []string) {
	for _, who := range s.returning() {
		if !who.logsIn() || s.keepsOut(who) {
			continue
		}
		guests := e.carts[caller{-1, who.token}.ref(s.world).CartKey()]
		own := e.carts[who.ref(s.world).CartKey()]
		n := len(guests.Lines)
		switch {
		case n == 0:
		case int64(n+len(own.Lines)) <= 2*s.plan.setting.lines:
			wrong = append(wrong, fmt.Sprintf("the cart of t%d still holds %s", who.token+1, linesOf(guests)))
		case s.told[who] == nil || s.told[who].Code != problem.CartFull:
			wrong = append(wrong, fmt.Sprintf("%s was not told that the cart is full", who))
		}
	}
	return wrong
}
