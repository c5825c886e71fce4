package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
	"commerce/cart/redisstore/layout"
)

// A step reads some hashes of one slot, decides, and commits. If they are no longer as they were read, or if a reply is lost, it
// reads and decides again: it is made once, or not at all. A decision that waits for replicas must recognize its own
// earlier result and still write something: a wait covers only what its connection has written.

// Slot is what a step has read.
type Slot struct {
	store  *Store
	at     located
	Now    time.Time  // by Redis' clock
	keys   []string   // of the hashes
	hashes [][]string // member, value, member, value, …
	ttl    time.Duration

	clockError, tolerance int64 // ms
}

// Get returns a member of a hash, by its number from 0; "" for none.
func (s *Slot) Get(hash int, member string) string {
	for i := 0; i+1 < len(s.hashes[hash]); i += 2 {
		if s.hashes[hash][i] == member {
			return s.hashes[hash][i+1]
		}
	}
	return ""
}

// commit begins a commit that is made only if the first hash has the fence with which it was read.
func (s *Slot) commit() *commit { return s.commitTo(0) }

// commitTo begins a commit that depends on the fence of one of the hashes. Its keys are only those that it names: while a slot
// moves, a script with a hash that is missing is refused.
func (s *Slot) commitTo(hash int) *commit {
	now := s.Now.UnixMilli()
	return &commit{
		keys: []string{s.keys[hash]}, time: now, until: now + s.clockError + s.tolerance, fence: s.Get(hash, "n"), mark: newFenceMark(s.store.random, now),
		by: " step", // changes by the same instance go on meanwhile, and would win every race
	}
}

// become begins a commit after which the cart, which is the first hash, is the cell.
func (s *Slot) become(held *layout.Hash, cell cart.Cell) *commit {
	c := s.commit()
	c.encode(held, cell, s.ttl, s.Now)
	return c
}

// lostReplies is how many lost replies, and how many refusals that pass, a step survives.
const lostReplies = 3

// step makes a step on the master of the first key, and waits for replicas for a time; a wait of 0 does not. decide may run several
// times, and returns nil for nothing to commit. Its errors are returned unchanged, except layout.ErrLayout; that and others are
// problem.Unavailable, with what the step was doing. The replication is unsafeWrite if nothing was committed.
func (s *Store) step(
	ctx context.Context, doing string, keys []string, wait time.Duration, decide func(*Slot) (*commit, error),
) (replication, error) {
	var refused error
	copies, err := s.tryStep(ctx, keys, wait, func(found *Slot) (c *commit, err error) {
		if c, err = decide(found); !errors.Is(err, layout.ErrLayout) {
			refused = err
		}
		return c, err
	})
	if err != nil && refused == nil {
		err = cart.Unavailable(doing, err)
	}
	return copies, err
}

func (s *Store) tryStep(ctx context.Context, keys []string, wait time.Duration, decide func(*Slot) (*commit, error)) (replication, error) {
	var failed, late, refused int
	var took time.Duration
	var lost []*commit // without a reply
	for {
		at, err := s.masterOf(ctx, keys[0])
		if err != nil {
			return unsafeWrite, err
		}
		began := s.clock()
		found, err := s.look(ctx, at, keys)
		if err != nil {
			return unsafeWrite, err
		}
		if made := slices.IndexFunc(lost, func(c *commit) bool { return c.wasMade(found.Get(0, "n")) }); made >= 0 {
			lost[made].end()
			if wait == 0 {
				return unsafeWrite, nil
			}
			lost = nil
		}
		found.tolerance = s.tolerance << min(late, 8)
		c, err := decide(found)
		if err != nil || c == nil {
			return unsafeWrite, err
		}
		reply, copies, err := s.send(ctx, at, c, turnAfter(failed, took), wait)
		took = s.clock().Sub(began)
		again := patience
		switch {
		case err == nil && reply.word == "applied":
			c.end()
			return copies, nil
		case err == nil && reply.word == "changed":
			failed, again = failed+1, reply.wait
		case err == nil:
			late, again = late+1, 0
		case isPassing(err) && refused < lostReplies:
			refused++
		case isReply(err), errors.Is(err, context.DeadlineExceeded), len(lost) == lostReplies:
			return unsafeWrite, err
		default:
			lost = append(lost, c)
		}
		if s.pause(ctx, again) != nil {
			return unsafeWrite, cmp.Or(err, errContended)
		}
	}
}

// turnAfter returns for how long others must not commit if this attempt fails too: a step takes two round trips, a change may take one.
func turnAfter(failed int, took time.Duration) time.Duration {
	if failed < 2 {
		return 0
	}
	return min(took*3/2+time.Millisecond, 100*time.Millisecond)
}

// errContended is not a timeout of Redis, which works.
var errContended = errors.New("redisstore: others kept changing the cart")

// isPassing reports whether Redis has refused a script for a reason that soon passes.
func isPassing(err error) bool {
	return slices.ContainsFunc([]string{"TRYAGAIN", "READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN"}, func(prefix string) bool {
		return redis.HasErrorPrefix(err, prefix)
	})
}

// look reads the hashes of one slot, with the time.
func (s *Store) look(ctx context.Context, at located, keys []string) (*Slot, error) {
	sent := s.clock()
	clock := redis.NewTimeCmd(ctx, "time")
	cmds, err := s.ask(ctx, at, []redis.Cmder{clock}, keys)
	if err != nil {
		return nil, err
	}
	found := &Slot{store: s, at: at, keys: keys, ttl: s.ttlOf(refOf(keys[0])), hashes: make([][]string, len(keys))}
	for i := range cmds {
		if found.hashes[i], err = membersOf(cmds[i], nil); err != nil {
			return nil, err
		}
	}
	if clock.Err() == nil {
		at.learn(clock.Val().UnixMilli(), sent, s.clock())
	}
	now, err := at.redisNow(ctx)
	if err != nil {
		return nil, err
	}
	found.Now, found.clockError = time.UnixMilli(now), at.clockError()
	return found, nil
}
