package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/script"
	"commerce/cart"
)

// Stored is what is stored for a reference. The zero value means nothing is.
type Stored struct {
	cart.Cart
	Pending PendingMerges // into this cart

	// Merged is the report of the latest merge within cart.ReportLife; nil for none.
	Merged *cart.MergeReport

	// Agent is the cart.Moment at which the last change of the cart's agent has left it, or
	// AgentCanceled; "0.0" in a cart that a hand-over has begun, "" in others.
	Agent string

	undoneBy string // the tag of the customer's cart out of which an undo has taken this one; "" for none

	layout  string
	merged  string // Merged as it is stored
	expires int64  // ms by Redis' clock, a whole second; 0 if only stamps are left
}

// inUse reports whether reads renew the TTL: not for what remains of an emptied cart.
func (c *Stored) inUse() bool {
	return c.InUse() || len(c.Pending) > 0
}

// Load reads a cart with one HGETALL, and renews its TTL if 1/renewals of it has passed. It
// creates nothing: if there is no cart, it returns the zero Stored.
func (s *Store) Load(ctx context.Context, ref Ref) (Stored, error) {
	at, err := s.masterOf(ctx, ref.cartKey())
	if err != nil {
		return Stored{}, cart.Unavailable("find master", err)
	}
	hashes, err := s.ask(ctx, at, []string{ref.cartKey()})
	if err != nil {
		return Stored{}, cart.Unavailable("read cart", err)
	}
	return s.loaded(ctx, at, ref, hashes[0])
}

// ask reads the hashes of keys, and runs other commands that only read, in one round trip to a
// master, which other callers may share. It returns the commands that have read the hashes, for
// membersOf. If the master cannot be reached or refuses a command, ask repeats all of them through
// the client, which knows where the cart is now. An error means that there is no reply; otherwise
// each command has its own result.
func (s *Store) ask(ctx context.Context, at located, keys []string, others ...redis.Cmder) (hashes []redis.Cmder, err error) {
	cmds := make([]redis.Cmder, 0, len(keys)+len(others))
	for _, key := range keys {
		// One allocation for all members. go-redis neither redirects nor repeats what it does not read.
		cmds = append(cmds, redis.NewRawCmd(ctx, "hgetall", key))
	}
	cmds = append(cmds, others...)
	err = at.reads.send(ctx, at.client, reading{s.Batch, !s.clustered()}, cmds...)
	if err == nil {
		return cmds[:len(keys)], nil
	}
	if ctx.Err() != nil || !s.clustered() && !isReply(err) { // the client has already tried again
		return nil, err
	}
	for i, key := range keys {
		cmds[i] = redis.NewMapStringStringCmd(ctx, "hgetall", key)
	}
	for _, cmd := range others {
		cmd.SetErr(nil)
	}
	exec(ctx, s.Client, !s.clustered(), cmds)
	return cmds[:len(keys)], nil
}

// loaded parses a cart that was read from a master, and renews its TTL if needed.
func (s *Store) loaded(ctx context.Context, at located, ref Ref, hash redis.Cmder) (Stored, error) {
	stored, err := s.parsed.parse(ref, hash)
	if err != nil {
		return Stored{}, cart.Unavailable("read cart", err)
	}
	if stored.layout == "" {
		return Stored{}, nil
	}
	redisNow, err := at.redisNow(ctx)
	if err != nil {
		return Stored{}, cart.Unavailable("ask time", err)
	}
	if stored.Merged, err = stored.mergedSince(redisNow); err != nil {
		return Stored{}, cart.Unavailable("read cart", err)
	}
	left := time.Duration(stored.expires-redisNow) * time.Millisecond
	if stored.renewedAt(left, s.ttlOf(ref)) {
		if renewed, err := s.renew(ctx, at, ref); err == nil {
			return renewed, nil
		}
		// A Redis that refuses writes can still be read. The estimate of its clock may be wrong.
		if left, err = s.Client.PTTL(ctx, ref.cartKey()).Result(); err != nil {
			return Stored{}, cart.Unavailable("read TTL", err)
		}
	}
	return stored.expiring(left, s.Now()), nil
}

// renewals is into how many parts a TTL is divided: a read renews it when one has passed.
const renewals = 720

// renewedAt reports whether a read renews the TTL of a cart that has this much time left. It does if
// that is more than a TTL: the setting has changed, or the estimate of Redis' clock is wrong.
func (c *Stored) renewedAt(left, ttl time.Duration) bool {
	part := ttl / renewals
	return c.inUse() && (left <= ttl-part || left > ttl+part)
}

func (s *Store) renew(ctx context.Context, at located, ref Ref) (Stored, error) {
	sent := time.Now()
	reply, err := s.scripts["renew"].Run(ctx, s.Client, script.Repeatable, []string{ref.cartKey()}, s.ttlOf(ref).Milliseconds()).Slice()
	if err != nil {
		return Stored{}, cart.Unavailable("renew cart", err)
	}
	flat, left, now := reply[0], reply[1].(int64), reply[2].(int64)
	at.learn(now, sent, time.Now())
	stored, err := s.parseStored(flat, left, now)
	if err != nil {
		return Stored{}, cart.Unavailable("renew cart", err)
	}
	return stored, nil
}

// parseStored parses a script's reply with the ms that the cart has left, at now by Redis' clock.
func (s *Store) parseStored(flat any, left, now int64) (Stored, error) {
	stored, err := parseCart(texts(flat.([]any)))
	if err == nil {
		stored.Merged, err = stored.mergedSince(now)
	}
	return stored.expiring(time.Duration(left)*time.Millisecond, s.Now()), err
}

// mergedSince returns Merged, at a time in ms by Redis' clock.
func (c *Stored) mergedSince(now int64) (*cart.MergeReport, error) {
	report, err := parseReport(c.merged)
	if report == nil || now-report.At.UnixMilli() > cart.ReportLife.Milliseconds() {
		return nil, err
	}
	return report, nil
}

// expiring sets ExpiresAt. If left is not positive, it stays zero.
func (c Stored) expiring(left time.Duration, now time.Time) Stored {
	if c.ID != "" && left > 0 {
		c.ExpiresAt = now.Add(left)
	}
	return c
}
