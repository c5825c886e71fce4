package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"commerce/auth/problem"
	"commerce/cart/service"
	"commerce/cart/share"
)

// Operations on shared copies. The model of carts knows only that these requests bring carts along: what copies promise is
// about one code each, and is judged from the answers.

const (
	maxShares = 10
	shareLife = 30*24*time.Hour - time.Minute
)

// actOnShare makes a call with a share, as package share makes it.
func (a *request) actOnShare(ctx context.Context, v *service.Visit) {
	calls, r := share.New(a.service.Carts, nil), &a.result
	switch a.op.verb {
	case shares:
		var link service.Link
		if link, r.replayed, r.err = calls.Share(ctx, v, a.op.key); r.err == nil {
			r.code = link.Code
		}
	case opens:
		priced, err := calls.SharedCart(ctx, v, a.op.code)
		r.code, r.err, r.copied = a.op.code, err, linesOf(priced.Cart)
	case unshares:
		r.code, r.err = a.op.code, calls.Unshare(ctx, v, "key", a.op.code)
	}
	r.merge = v.Merge()
}

// answered returns the latest code that a client knows by the operation's answers; "" for none.
func (o *operation) answered() (code string) {
	for _, a := range o.attempts {
		if a.succeeded() {
			code = a.result.code
		}
	}
	return code
}

func (a *request) succeeded() bool { return a.over && !a.dead && a.result.err == nil }

// leaves reports whether the request may still store something after a time of the history.
func (a *request) leaves(since int64) bool { return a.end == 0 || a.end >= since || a.late > 0 }

// codeUse is what requests have done with a code.
type codeUse struct {
	code                      string
	made                      *operation
	opened, deleted, answered []*request
}

func (s *schedule) codeUses() (all []*codeUse) {
	of := func(code string, made *operation) *codeUse {
		if i := slices.IndexFunc(all, func(u *codeUse) bool { return u.code == code }); i >= 0 {
			return all[i]
		}
		all = append(all, &codeUse{code: code, made: made})
		return all[len(all)-1]
	}
	for a := range s.requests() {
		if a.op.verb == shares && a.succeeded() {
			u := of(a.result.code, a.op)
			u.answered = append(u.answered, a)
		}
	}
	for a := range s.requests() {
		switch {
		case a.op.code == "":
		case a.op.verb == opens:
			u := of(a.op.code, a.op.made)
			u.opened = append(u.opened, a)
		case a.op.verb == unshares:
			u := of(a.op.code, a.op.made)
			u.deleted = append(u.deleted, a)
		}
	}
	for _, u := range all {
		for _, a := range u.made.reopened {
			if a.op.code == u.code {
				u.opened = append(u.opened, a)
			}
		}
	}
	return all
}

func (s *schedule) checkShares() (wrong []string) {
	codes := s.codeUses()
	for _, op := range s.ops {
		made := slices.ContainsFunc(codes, func(u *codeUse) bool { return u.made == op && u.code != op.answered() })
		if op.verb == shares && made && !s.mayMove(op) {
			wrong = append(wrong, fmt.Sprintf("%s has got several codes", op.name))
		}
	}
	for a := range s.requests() {
		if r := a.result; a.op.verb == shares && r.refused() == problem.ValidationFailed && s.plan.shared == 0 {
			wrong = append(wrong, fmt.Sprintf("%s was told that the cart has too many shares", a))
		}
	}
	for _, u := range codes {
		for _, a := range u.opened {
			wrong = append(wrong, s.checkOpened(u, a)...)
		}
		for _, d := range u.deleted {
			if d.result.err == nil && d.over && !s.related(u.made, d) {
				wrong = append(wrong, fmt.Sprintf("%s has deleted what %s has shared", d, u.made.name))
			}
		}
	}
	wrong = append(wrong, s.countShares()...)
	for _, check := range []func(*codeUse) []string{s.checkRepeat, s.checkEnd} {
		for _, u := range codes {
			wrong = append(wrong, check(u)...)
		}
	}
	return wrong
}

// mayMove reports whether the cart that an operation names may be another one for its later requests.
func (s *schedule) mayMove(op *operation) bool {
	if s.plan.forgetful || s.failedOver() || slices.ContainsFunc(op.tries, func(who caller) bool { return who != op.tries[0] }) {
		return true
	}
	return op.tries[0].customer < 0 && slices.ContainsFunc(s.ops, func(other *operation) bool {
		return other.verb == takes || slices.ContainsFunc(other.tries, func(who caller) bool { return who.logsIn() && who.token == op.tries[0].token })
	})
}

// related reports whether the cart of a request may be the one that has shared, or the one that it was merged into.
func (s *schedule) related(made *operation, a *request) bool {
	who := a.who.owner()
	if who.token >= modelTokens || s.taken()[0] != nil || slices.ContainsFunc(made.tries, func(by caller) bool { return by.owner() == who }) {
		return true
	}
	brings := func(login caller) bool {
		return login.logsIn() && login.customer == who.customer && slices.ContainsFunc(made.tries, func(by caller) bool { return by.token == login.token })
	}
	return slices.ContainsFunc(s.ops, func(op *operation) bool { return slices.ContainsFunc(op.tries, brings) })
}

// checkOpened checks a request that has tried to open a code.
func (s *schedule) checkOpened(u *codeUse, a *request) (wrong []string) {
	if a.result.unknown() {
		return nil
	}
	for _, other := range u.opened {
		if a.succeeded() && other.succeeded() && a.result.copied != other.result.copied && !u.expired(a) && !s.erases(u, a) && !s.losesCopy(u) && !slices.ContainsFunc(u.deleted, func(d *request) bool { return s.losesDeletion(u, d) }) {
			wrong = append(wrong, fmt.Sprintf("%s and %s opened different copies", a, other))
		}
	}
	for _, d := range u.deleted {
		if a.succeeded() && d.succeeded() && d.end < a.call && !u.expired(a) && !s.losesDeletion(u, d) {
			wrong = append(wrong, fmt.Sprintf("%s opened what %s had deleted", a, d))
		}
	}
	for e := range s.requests() {
		if a.succeeded() && e.op.verb == erases && e.succeeded() && e.end < a.call && u.owner() == e.who.owner() && !u.leaves(e.call) {
			wrong = append(wrong, fmt.Sprintf("%s opened what %s had erased", a, e))
		}
	}
	if a.result.refused() != "" && s.mustOpen(u, a) {
		wrong = append(wrong, fmt.Sprintf("%s did not open what %s had shared", a, u.made.name))
	}
	return wrong
}

// owner is whose cart has made the share, before it was merged.
func (u *codeUse) owner() caller { return u.made.tries[0].owner() }

// leaves reports whether a request to share may still store something after a time of the history.
func (u *codeUse) leaves(since int64) bool {
	return slices.ContainsFunc(u.made.attempts, func(a *request) bool { return a.leaves(since) })
}

// losesDeletion reports whether a failover may have lost the deletion of the copy, or that the list has it; or, if the new owner of the
// cart has deleted it, that the cart has moved.
func (s *schedule) losesDeletion(u *codeUse, d *request) bool {
	return s.noteLoss(s.mayLose(customerShard, d) || s.mayLose(u.owner().shard(), d) || d.who.owner() != u.owner() && s.losesMove(u))
}

// losesMove reports whether a failover may have lost that the cart has moved.
func (s *schedule) losesMove(u *codeUse) bool {
	for a := range s.requests() {
		if a.moves(u.owner().token) && (s.mayLose(u.owner().shard(), a) || s.mayLose(customerShard, a)) {
			return true
		}
	}
	return false
}

// moves reports whether a request may move the cart of a token.
func (a *request) moves(token int) bool {
	return a.op.verb == takes || a.who.logsIn() && a.who.token == token
}

// losesCopy reports whether a failover may have lost the copy, or that it was kept.
func (s *schedule) losesCopy(u *codeUse) bool { return s.noteLoss(s.losesAttempt(u, customerShard)) }

// losesOwner reports whether a failover may have lost who has shared.
func (s *schedule) losesOwner(u *codeUse) bool {
	return s.noteLoss(s.losesAttempt(u, u.owner().shard()) || s.losesMove(u))
}

func (s *schedule) losesAttempt(u *codeUse, sh shard) bool {
	return slices.ContainsFunc(u.made.attempts, func(a *request) bool { return s.mayLose(sh, a) })
}

func (s *schedule) noteLoss(lost bool) bool {
	if lost {
		s.tried["shares that a failover may lose or restore"]++
	}
	return lost
}

// mustOpen reports whether nothing may have ended a share when a request tried to open it.
func (s *schedule) mustOpen(u *codeUse, a *request) bool {
	first := slices.IndexFunc(u.answered, func(by *request) bool { return by.end < a.call })
	if first < 0 {
		return false
	}
	if s.erases(u, a) || slices.ContainsFunc(u.deleted, func(d *request) bool { return d.call < a.end }) {
		return false
	}
	return !u.expired(a) && !s.losesCopy(u)
}

// erases reports whether the owner of a share may have been erased before the end of a request.
func (s *schedule) erases(u *codeUse, a *request) bool {
	for e := range s.requests() {
		if e.op.verb == erases && (e.who.owner() == u.owner() || u.owner().token >= modelTokens) && e.call < a.end {
			return true
		}
	}
	return false
}

// expired reports whether the share may have expired at the end of a request, so a repeat may have shared other lines.
func (u *codeUse) expired(a *request) bool {
	return a.endedAt-u.made.attempts[0].startedAt >= shareLife
}

// checkRepeat opens a code and shares again, when nothing else happens any more.
func (s *schedule) checkRepeat(u *codeUse) (wrong []string) {
	wrong = s.checkOpened(u, s.reopen(u))
	again := s.inPeace("end", u.made.tries[0], operation{verb: shares, key: u.made.key})
	if again.result.code != u.code {
		return wrong
	}
	for _, d := range u.deleted {
		if d.succeeded() && !u.expired(again) && !s.losesDeletion(u, d) {
			wrong = append(wrong, fmt.Sprintf("%s shares again what %s has deleted", u.made.name, d))
		}
	}
	u.answered = append(u.answered, again)
	return append(wrong, s.checkOpened(u, s.reopen(u))...)
}

func (s *schedule) reopen(u *codeUse) *request {
	return s.inPeace("end", nobody, operation{verb: opens, made: u.made, code: u.code})
}

// reopenAll opens all shares before late commands arrive.
func (s *schedule) reopenAll() {
	for _, op := range s.ops {
		if code := op.answered(); op.verb == shares && code != "" {
			op.reopened = append(op.reopened, s.inPeace("end", nobody, operation{verb: opens, made: op, code: code}))
		}
	}
}

// checkEnd deletes or erases what a code opens at the end.
func (s *schedule) checkEnd(u *codeUse) (wrong []string) {
	if s.reopen(u).result.err != nil {
		return nil
	}
	if s.plan.forgetful {
		if _, err := s.services[0].redis.Erase(s.ctx, u.owner().ref(s.world)); err != nil || s.reopen(u).result.err == nil {
			wrong = append(wrong, fmt.Sprintf("what %s has shared outlives its owner: %v", u.made.name, err))
		}
		return wrong
	}
	for _, who := range s.everyone() {
		d := s.inPeace("end", who, operation{verb: unshares, made: u.made, code: u.code})
		switch {
		case d.result.err != nil:
			continue
		case !s.related(u.made, d):
			wrong = append(wrong, fmt.Sprintf("%s can delete what %s has shared", who, u.made.name))
		case s.reopen(u).result.err == nil:
			wrong = append(wrong, fmt.Sprintf("what %s has shared opens after %s has deleted it", u.made.name, who))
		}
		return wrong
	}
	if twice := s.taken()[0] != nil; !twice && !s.losesOwner(u) && s.passed < 24*time.Hour { // after which an emptied cart lapses
		wrong = append(wrong, fmt.Sprintf("nobody can delete what %s has shared", u.made.name))
	}
	return wrong
}

// countShares checks that no list has too many shares.
func (s *schedule) countShares() (wrong []string) {
	for _, key := range s.look() {
		n := 0
		for i := 0; strings.Contains(key.key, ":shares:") && i < len(key.members); i += 2 {
			expires, err := strconv.ParseInt(key.members[i+1], 10, 64) // not of one that is deleted
			if len(key.members[i]) > 1 && err == nil && expires > s.memory.now(shardOf(key.key)).Unix() {
				n++
			}
		}
		if n > maxShares {
			wrong = append(wrong, fmt.Sprintf("%s has %d shares", key.key, n))
		}
	}
	return wrong
}

// fillList lists shares of a cart that exists, except the last ones.
func (s *schedule) fillList(who caller) {
	h, _ := s.memory.at(who.ref(s.world).CartKey())
	id, ok := h.get("i")
	if !ok {
		return
	}
	var members []string
	for i := range s.plan.shared {
		members = append(members, fmt.Sprint("another", i), strconv.FormatInt(beginning.Add(shareLife).Unix(), 10))
	}
	key := who.ref(s.world).BesideKey("shares:" + id)
	s.memory.write("HSET", key, members)
	s.memory.write("PEXPIRE", key, []string{strconv.FormatInt(shareLife.Milliseconds(), 10)})
}

// isCopy reports whether a key is that of a shared copy.
func (k stored) isCopy() bool { return strings.HasPrefix(k.key, "cart:{1:s:") }

func (p *plan) drawShares(c cast) {
	who := c.caller()
	if len(p.base) > 0 && c.IntN(4) > 0 {
		who = p.base[c.IntN(len(p.base))].who
	}
	if c.IntN(4) == 0 {
		p.shared = maxShares - 1
	}
	for range 1 + p.shared/(maxShares-1) {
		made := &operation{verb: shares, insists: c.IntN(2) == 0, tries: []caller{who, who, who}[:1+c.IntN(3)]}
		p.add(made, c)
		made.key = "key of the share " + made.name
		for range 1 + c.IntN(2) {
			o := &operation{verb: unshares, made: made, insists: c.IntN(2) == 0, tries: []caller{who}}
			switch c.IntN(4) {
			case 0:
				o.verb, o.tries[0] = opens, nobody
			case 1:
				o.tries[0].customer = c.IntN(c.customers)
			case 2:
				o.tries[0] = c.caller()
			}
			if o.verb == unshares && c.IntN(3) > 0 {
				o.tries = append(o.tries, o.tries[0])
			}
			p.add(o, c)
		}
	}
}
