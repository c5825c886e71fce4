package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
	"commerce/cart"
)

// Held is what is stored for a reference. The zero value means nothing is.
type Held struct {
	cart.Cart
	Notes Notes // of merges under way into this cart

	// Merged is the report of the latest merge; nil if there was none within
	// cart.ReportLife.
	Merged *cart.MergeReport

	layout  string
	merged  string // Merged as it is stored
	expires int64  // ms by Redis' clock, a whole second; 0 if only stamps are left
}

// inUse reports whether reads renew the cart's TTL. The remains of an emptied cart are not
// in use.
func (h *Held) inUse() bool { return len(h.Lines) > 0 || h.Coupon != "" || len(h.Notes) > 0 }

// Load reads a cart with one HGETALL, and renews its TTL if 1/renewals of it has passed. It
// creates nothing: if there is no cart, it returns the zero Held.
func (s *Store) Load(ctx context.Context, ref Ref) (Held, error) {
	at, err := s.masterOf(ctx, ref.cartKey())
	if err != nil {
		return Held{}, cart.Unavailable("find master", err)
	}
	read, err := ask(ctx, s, at, func(hash hashForm) ownCart { return ownCart{hash(ctx, ref.cartKey())} })
	if err != nil {
		return Held{}, cart.Unavailable("read cart", err)
	}
	return s.held(ctx, at, ref, read.hash)
}

// ownCart is the question that reads a cart.
type ownCart struct{ hash hashRead }

func (q ownCart) cmds() []redis.Cmder { return []redis.Cmder{q.hash.cmd} }

// hashForm is cheapHash or plainHash.
type hashForm func(ctx context.Context, key string) hashRead

// question are commands that only read, and are sent together.
type question interface{ cmds() []redis.Cmder }

// ask asks a master, together with other callers. If the master cannot be reached or
// refuses a command, ask repeats the question through the client: it knows which node has
// the cart now, and whether a refusal is temporary. An error means that there is no reply;
// otherwise each command has its own result.
func ask[Q question](ctx context.Context, s *Store, at located, form func(hashForm) Q) (Q, error) {
	q := form(cheapHash)
	err := at.reads.send(ctx, at.client, s.reading, q.cmds()...)
	if err == nil {
		return q, nil
	}
	if ctx.Err() != nil || !s.clustered() && !isReply(err) { // the client has already tried again
		return q, err
	}
	q = form(plainHash)
	exec(ctx, s.client, s.reading.guard, q.cmds())
	return q, nil
}

// held parses a cart that was read from a master, and renews its TTL if needed.
func (s *Store) held(ctx context.Context, at located, ref Ref, read hashRead) (Held, error) {
	var room [128]string // on the stack, for most carts
	flat, err := read.flat(room[:0])
	if err != nil {
		return Held{}, cart.Unavailable("read cart", err)
	}
	if len(flat) == 0 {
		return Held{}, nil
	}
	held, err := parseCart(flat)
	if err == nil && held.layout != layout {
		err = fmt.Errorf("%w: number %q, this release knows %s", errLayout, held.layout, layout)
	}
	if err != nil {
		return Held{}, cart.Unavailable("read cart", err)
	}
	redisNow, err := at.redisNow(ctx)
	if err != nil {
		return Held{}, cart.Unavailable("ask time", err)
	}
	if held.Merged, err = held.mergedSince(redisNow); err != nil {
		return Held{}, cart.Unavailable("read cart", err)
	}
	left := time.Duration(held.expires-redisNow) * time.Millisecond
	if held.renewedAt(left, s.ttlOf(ref)) {
		if renewed, err := s.renew(ctx, at, ref); err == nil {
			return renewed, nil
		}
		// A Redis that refuses writes can still be read. The estimate of its clock may be wrong.
		if left, err = s.client.PTTL(ctx, ref.cartKey()).Result(); err != nil {
			return Held{}, cart.Unavailable("read TTL", err)
		}
	}
	return held.expiring(left, s.now()), nil
}

// renewals is into how many parts a TTL is divided: a read renews it when one has passed.
const renewals = 720

// renewedAt reports whether a read renews the TTL of a cart that has this much time left.
// More than a whole TTL also means yes: the setting has changed, or the estimate of Redis'
// clock is wrong, which renewing corrects.
func (h *Held) renewedAt(left, ttl time.Duration) bool {
	part := ttl / renewals
	return h.inUse() && (left <= ttl-part || left > ttl+part)
}

// renew reads a cart and renews its TTL.
func (s *Store) renew(ctx context.Context, at located, ref Ref) (Held, error) {
	sent := time.Now()
	reply, err := s.scripts.renew.Run(ctx, s.client, script.Repeatable, []string{ref.cartKey()}, s.ttlOf(ref).Milliseconds()).Slice()
	if err != nil {
		return Held{}, cart.Unavailable("renew cart", err)
	}
	at.learn(reply[2].(int64), sent, time.Now())
	held, err := s.replied(reply[0], reply[1], reply[2].(int64))
	if err != nil {
		return Held{}, cart.Unavailable("renew cart", err)
	}
	return held, nil
}

// replied parses a cart in a script's reply, and the ms that it has left. now is in ms by Redis'
// clock.
func (s *Store) replied(flat, left any, now int64) (Held, error) {
	held, err := parseCart(texts(flat.([]any)))
	if err == nil {
		held.Merged, err = held.mergedSince(now)
	}
	return held.expiring(time.Duration(left.(int64))*time.Millisecond, s.now()), err
}

// mergedSince returns the report of the latest merge; nil if it is older than cart.ReportLife. now
// is in ms by Redis' clock.
func (h *Held) mergedSince(now int64) (*cart.MergeReport, error) {
	if h.merged == "" {
		return nil, nil
	}
	report, err := parseReport(h.merged)
	if err != nil || now-report.At.UnixMilli() > cart.ReportLife.Milliseconds() {
		return nil, err
	}
	return report, nil
}

// expiring sets ExpiresAt. If left is not positive, it stays zero.
func (h Held) expiring(left time.Duration, now time.Time) Held {
	if h.ID != "" && left > 0 {
		h.ExpiresAt = now.Add(left)
	}
	return h
}
