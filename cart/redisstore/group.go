package redisstore

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
	"commerce/cart"
	"commerce/cart/redisstore/layout"
)

// group are changes of one cart that are decided in order and committed together: all of them or none. Each has its own
// version, outcome and key.
type group struct {
	*Store
	ref     Ref
	members []*member
	ctx     context.Context // until the first of their deadlines

	held   Stored // what the next decision is made from
	known  bool   // whether there is such
	fresh  bool   // whether it was read after the members joined, on a server that is a master
	failed int    // how many commits have found another cart

	mustRead bool // what is remembered of the cart is not enough
	late     int  // how many have come too late, or too early
	took     time.Duration

	contended time.Duration // how long commits take of a cart that others change, too; 0 for another one
}

// decision is what a commit makes of a cart. The commit is nil if there is nothing to commit.
type decision struct {
	*commit
	now    int64 // when it was made, in ms by Redis' clock
	each   []cart.Decision
	stored Stored
	left   time.Duration
}

// writesOnlyKeys reports whether the commit only remembers outcomes of lists by their keys: an unused cart has no fence.
func (d *decision) writesOnlyKeys() bool { return d.stored.ID == "" }

// decideAll decides changes of one cart, and ends each. contended is what it has returned for those before them: how long
// a commit took, if others changed the cart meanwhile, and otherwise 0.
func (s *Store) decideAll(ref Ref, members []*member, contended time.Duration) time.Duration {
	g := group{Store: s, ref: ref, members: members, contended: contended}
	defer func() {
		if panicked := recover(); panicked != nil {
			abort(members, fmt.Sprintf("%v\n\n%s", panicked, debug.Stack()))
		}
	}()
	g.run()
	if g.failed == 0 {
		return 0
	}
	return g.took
}

func (g *group) run() {
	for {
		g.members = g.waiting()
		if len(g.members) == 0 {
			return
		}
		ctx, cancel := firstToEnd(g.members)
		g.ctx = ctx
		done, err := g.step()
		timeOver := ctx.Err() != nil
		cancel()
		switch {
		case err == nil && done:
			return
		case err == nil:
		case timeOver && g.members[0].maybeMade.Load() == nil && g.anyHasTime(): // the others go on
		case redis.HasErrorPrefix(err, "TRYAGAIN") && len(g.members) > 1: // a key's hash is missing while the slot moves
			for _, m := range g.members {
				g.decideAll(g.ref, []*member{m}, 0)
			}
			return
		default:
			for _, m := range g.members {
				m.end(Outcome{}, err)
			}
			return
		}
	}
}

// firstToEnd returns a context that ends with the first deadline of the members, but not when one of several disconnects.
func firstToEnd(members []*member) (context.Context, func()) {
	if len(members) == 1 {
		return members[0].ctx, func() {}
	}
	ctx := context.WithoutCancel(members[0].ctx)
	var first time.Time
	for _, m := range members {
		if at, bounded := m.ctx.Deadline(); bounded && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, first)
}

// lastToEnd returns a context that ends with the last deadline of the members.
func lastToEnd(members []*member) (context.Context, func()) {
	if len(members) == 1 {
		return members[0].ctx, func() {}
	}
	ctx := context.WithoutCancel(members[0].ctx)
	var last time.Time
	for _, m := range members {
		at, bounded := m.ctx.Deadline()
		if !bounded {
			return ctx, func() {}
		}
		if at.After(last) {
			last = at
		}
	}
	return context.WithDeadline(ctx, last)
}

// anyHasTime reports whether the time of some member is not over.
func (g *group) anyHasTime() bool {
	return slices.ContainsFunc(g.members, func(m *member) bool { return m.ctx.Err() == nil })
}

// waiting returns the members whose time is not over.
func (g *group) waiting() []*member {
	var all []*member
	for _, m := range g.members {
		if err := m.ctx.Err(); err != nil {
			m.end(Outcome{}, err)
			continue
		}
		all = append(all, m)
	}
	return all
}

// step reads the cart if needed, decides and commits. done is false if that must be done again.
func (g *group) step() (done bool, err error) {
	at, err := g.masterOf(g.ctx, g.ref.CartKey())
	if err != nil {
		return false, err
	}
	if err := g.ctx.Err(); err != nil {
		return false, cause.Of(ServerOf(at.client), time.Now(), err)
	}
	if g.remembers && !g.known && !g.fresh && !g.mustRead {
		g.held, g.known = g.parsed.last(g.ref)
		g.known = g.known && g.held.roomForKeys >= g.keys() // a commit checks that none of them is used
	}
	if !g.known {
		held, err := g.read(g.ctx, at, g.ref, g.members)
		if err != nil {
			return false, err
		}
		g.hold(held)
		if g.members = g.waiting(); len(g.members) == 0 {
			return false, nil
		}
	}
	d, err := g.decide(at)
	switch {
	case err != nil:
		return false, err
	case d.commit != nil:
		return g.commit(at, d)
	case g.fresh:
		g.end(d, unsafeWrite)
		return true, nil
	}
	g.known, g.mustRead = false, true // a refusal, a replay and a no-op need a cart that was read now
	return false, nil
}

// keys returns how many members have an idempotency key.
func (g *group) keys() (n int) {
	for _, m := range g.members {
		if m.Key != "" {
			n++
		}
	}
	return n
}

// decide decides from what is held.
func (g *group) decide(at located) (*decision, error) {
	ms, err := at.redisNow(g.ctx)
	if err != nil {
		return nil, err
	}
	now := time.UnixMilli(ms)
	d := &decision{now: ms, stored: g.held, left: time.Duration(g.held.Expires*1000-ms) * time.Millisecond}
	d.each = make([]cart.Decision, 0, len(g.members))
	cell, commits := g.held.Cell, false
	var uses map[string]cart.KeyUse
	for _, m := range g.members {
		m.Mark = g.newMark()
		cell.Key = layout.ParseKeyUse(m.used)
		if use, again := uses[m.Key]; again && m.Key != "" {
			cell.Key = use
		}
		each := m.Decide(cell, now)
		if each.Commits && m.Key != "" { // otherwise nothing remembers the change, as if each was made by itself
			if uses == nil {
				uses = map[string]cart.KeyUse{}
			}
			uses[m.Key] = each.Use
		}
		commits = commits || each.Commits || g.touches(&each, now)
		cell = each.Cell
		d.each = append(d.each, each)
	}
	if commits {
		g.encode(d, cell, uses, at.clockError())
	}
	return d, nil
}

// touches reports whether a change without effect writes the cart: to renew its TTL, or since a wait for replicas covers
// only what its own connection has written.
func (g *group) touches(d *cart.Decision, now time.Time) bool {
	if g.held.ID == "" || d.Status != cart.Applied && d.Status != cart.Replayed {
		return false
	}
	_, _, due := d.Cell.Expiring(g.members[0].TTL, now)
	return due || g.Durable
}

// encode sets the commit of a decision, after which the cart is the cell.
func (g *group) encode(d *decision, cell cart.Cell, uses map[string]cart.KeyUse, clockError int64) {
	c := &commit{
		keys: []string{g.ref.CartKey()}, time: d.now, until: d.now + clockError + g.tolerance<<min(g.late, 8), fence: g.held.Fence, mark: newFenceMark(g.random, d.now),
	}
	d.commit = c
	for _, m := range g.members {
		if m.Key != "" { // also of what is refused: if the commit fails, it is decided again by what this finds
			c.check(g.ref.KeysKey(), m.Key, m.used)
		}
	}
	added := len(uses)
	if cell.ID != "" {
		cell.Key = cart.KeyUse{}
		hash, left := c.encode(&g.held.Hash, cell, g.members[0].TTL, time.UnixMilli(d.now))
		d.stored, d.left = Stored{Hash: hash}, left
	}
	d.stored.roomForKeys = max(g.held.roomForKeys-added, 0)
	if added > 0 {
		c.write("HDEL", g.ref.KeysKey(), anyOf(g.held.excessKeys(uses))...)
	}
	for _, m := range g.members {
		if use, used := uses[m.Key]; used && m.Key != "" {
			c.write("HSET", g.ref.KeysKey(), m.Key, layout.EncodeKeyUse(use))
			delete(uses, m.Key)
		}
	}
	if added > 0 {
		c.write("PEXPIRE", g.ref.KeysKey(), cart.KeyLife.Milliseconds())
	}
	if d.stored.Version != g.held.Version {
		c.announce(d.stored.Listened, g.ref, d.stored.Tag())
	}
}

// patience is how long a commit waits for its reply before the cart is read meanwhile: its connection may hang while
// others work.
const patience = 15 * time.Millisecond

// commit sends a decision.
func (g *group) commit(at located, d *decision) (done bool, err error) {
	g.setMaybeMade(d.each)
	ctx, settle := context.WithCancelCause(g.ctx)
	defer settle(nil)
	if !d.writesOnlyKeys() {
		meanwhile := time.AfterFunc(g.patience, func() {
			if v, err := g.judge(ctx, at, d.commit); err == nil {
				settle(v)
			}
		})
		defer meanwhile.Stop()
	}
	sent := g.clock()
	var wait time.Duration
	if g.Durable {
		wait = replicaWait
	}
	reply, copies, err := g.send(ctx, at, d.commit, g.turn(), wait)
	g.took, g.known = g.clock().Sub(sent), false
	if err != nil && !isReply(err) && mayHaveRun(err) && d.writesOnlyKeys() {
		_ = g.pause(g.ctx, patience)
		return false, nil // it is decided again: of two copies, at most one finds its keys unused
	}
	if err != nil && !isReply(err) {
		v, known := context.Cause(ctx).(*verdict)
		if !known && mayHaveRun(err) {
			ctx, cancel := lastToEnd(g.members)
			v, err = g.judge(ctx, at, d.commit)
			cancel()
			if err != nil {
				g.ReplyLost(SettledUnknown)
				return false, err
			}
			known = true
		}
		if known {
			return g.settle(d, v), nil
		}
	}
	if err != nil && mayHaveRun(err) { // Redis has refused a write, maybe after the first one
		return false, err
	}
	if err == nil && reply.word == "applied" {
		g.end(d, copies)
		return true, nil
	}
	g.setMaybeMade(nil)
	switch {
	case err != nil:
		return false, err
	case reply.word == "changed":
		g.failed++
		return false, g.changed(reply)
	}
	g.known, g.late = true, g.late+1 // the reply has corrected the estimate of Redis' clock
	return false, nil
}

// setMaybeMade sets the decisions of the members that may have been made; nil for none.
func (g *group) setMaybeMade(each []cart.Decision) {
	for i, m := range g.members {
		m.maybeMade.Store(nil)
		if each != nil {
			m.maybeMade.Store(&each[i])
		}
	}
}

// turn is for how long others must not commit if this commit fails. Whoever is nearer to Redis would win every race.
func (g *group) turn() time.Duration {
	took := max(g.took, g.contended)
	if g.failed < 2 && g.contended == 0 {
		return 0
	}
	return min(took*3/2+time.Millisecond, 25*time.Millisecond)
}

// changed takes the cart that a commit has found, after another instance's turn.
func (g *group) changed(reply committed) error {
	if reply.wait > 0 {
		return g.pause(g.ctx, reply.wait)
	}
	held, err := parseStored(reply.cart, nil)
	if err != nil {
		return err
	}
	i := 0
	for _, m := range g.members {
		if m.Key != "" && i < len(reply.found) {
			m.used, _ = reply.found[i].(string)
			i++
		}
	}
	held.oldestKeys = g.held.oldestKeys
	g.hold(held)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *group) hold(held Stored) {
	g.held, g.known, g.fresh = held, true, true
	g.parsed.keep(g.ref, held, false)
}

// end ends all members. copies are those of the commit.
func (g *group) end(d *decision, copies replication) {
	if d.commit != nil {
		g.parsed.keep(g.ref, d.stored, true)
	}
	for i, m := range g.members {
		each := &d.each[i]
		stored := d.stored
		stored.Cart, stored.Pending = each.Cell.Cart, each.Cell.Pending
		o := Outcome{Status: each.Status, Effect: each.Effect, Stored: stored, ChangedLine: each.Use.Line, Ops: each.Use.Ops, Text: each.Text}
		o.Merged = stored.mergedSince(d.now)
		o.Stored = o.expiring(d.left, g.Now())
		if each.Status == cart.Replayed && m.Key != "" {
			o.At = each.Use.At.UnixMilli()
		}
		if g.Durable && (each.Status == cart.Applied || each.Status == cart.Replayed) {
			o.Durability = copies.durability()
		}
		m.end(o, nil)
	}
}
