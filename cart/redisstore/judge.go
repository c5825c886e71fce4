package redisstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"commerce/auth/cause"
)

// A commit whose reply is lost: the cart is read to learn whether it was made.

// verdict is what a read tells of a commit without a reply.
type verdict struct {
	held Stored // the cart as it is now
	made bool   // whether the commit was made; otherwise no copy of it can be made any more
}

func (*verdict) Error() string { return "redisstore: the outcome is known without a reply" }

// judgeTries is how many attempts in a row may fail before the outcome of a commit stays unknown.
const judgeTries = 3

// barLife is for how many ms a bar may arrive.
const barLife = 5000

// judge reads the cart to learn whether a commit was made, and sees to it that it is not made later. It returns when that
// is certain.
func (g *group) judge(ctx context.Context, at located, c *commit) (v *verdict, err error) {
	for failed := 0; failed < judgeTries; failed++ {
		if v, err = g.judgeOnce(ctx, at, c); v != nil || errors.Is(err, errOvertaken) {
			return v, err
		}
		if late := g.pause(ctx, patience); late != nil {
			return nil, cause.Of(ServerOf(at.client), time.Now(), cmp.Or(err, late))
		}
	}
	return nil, err
}

func (g *group) judgeOnce(ctx context.Context, at located, c *commit) (*verdict, error) {
	now, err := at.redisNow(ctx)
	if err != nil {
		return nil, err
	}
	held, err := g.Store.read(ctx, at, g.ref, nil)
	switch {
	case err != nil:
		return nil, err
	case c.wasMade(held.Fence):
		return &verdict{held, true}, nil
	case !c.wasNotMade(held.Fence):
		return nil, errOvertaken
	case !c.expects(held.Fence):
		return &verdict{held, false}, nil
	}
	// Copies of the commit may be on their way: with another fence, none of them is made. A late copy of the bar does no harm.
	bar := &commit{keys: []string{g.ref.CartKey()}, time: now, until: now + barLife, fence: held.Fence, mark: newFenceMark(g.random, now)}
	barred, _ := bar.encode(&held.Hash, held.Cell, g.ttlOf(g.ref), time.UnixMilli(now))
	reply, _, err := g.send(ctx, at, bar, 0, 0)
	switch {
	case err == nil && reply.word == "applied":
		return &verdict{Stored{Hash: barred}, false}, nil
	case err != nil && isReply(err) && now > c.until: // Redis refuses writes, and the read was after the commit's time
		return &verdict{held, false}, nil
	case err != nil && isReply(err):
		return nil, cmp.Or(g.pause(ctx, time.Duration(c.until-now)*time.Millisecond), err)
	case err != nil:
		return nil, err
	case reply.wait > 0:
		return nil, cmp.Or(g.pause(ctx, reply.wait), errNotBarred)
	}
	return nil, errNotBarred
}

var errNotBarred = errors.New("redisstore: the cart has changed, or Redis is slow, while the outcome of a commit was looked up")

var errOvertaken = errors.New("redisstore: the reply of a commit was lost, and others have changed the cart too often since")

// settle ends a decision whose reply is lost by what a read told of it. done is false if it was not made.
func (g *group) settle(d *decision, v *verdict) (done bool) {
	if g.keys() == 0 {
		g.hold(v.held)
	}
	if !v.made {
		g.setMaybeMade(nil)
		g.ReplyLost(SettledNotMade)
		return false
	}
	g.ReplyLost(SettledMade)
	d.stored = v.held
	g.end(d, unsafeWrite)
	return true
}
