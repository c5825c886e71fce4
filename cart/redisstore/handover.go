package redisstore

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"commerce/cart"
)

// A hand-over is a merge that a code requests: see package handover. In addition, it recognizes its own
// earlier attempts by the name of its note.

// Claim is what a claimed cart says about its merge.
type Claim struct {
	Owner  Ref
	Note   string
	CartID string
}

// ClaimOn returns the claim on a guest's token; zero for none.
func (s *Store) ClaimOn(ctx context.Context, guest Ref) (Claim, error) {
	members, err := s.Client.HMGet(ctx, guest.claimedKey(), "o", "i").Result()
	if err != nil {
		return Claim{}, cart.Unavailable("look for claim", err)
	}
	by, _ := members[0].(string)
	if by == "" {
		return Claim{}, nil
	}
	claim := parseClaim(by)
	id, _ := members[1].(string)
	return Claim{RefOfTag(claim.Owner), claim.Note, id}, nil
}

// Redeemed returns which of the owners has received a guest's cart under the note of a hand-over, or the zero
// Ref.
func (s *Store) Redeemed(ctx context.Context, cartID, note string, owners ...Ref) (Ref, error) {
	asked := make([]redis.Cmder, len(owners))
	for i, owner := range owners {
		asked[i] = redis.NewStringCmd(ctx, "hget", owner.offeredKey(cartID), "n")
	}
	exec(ctx, s.Client, false, asked)
	for i, owner := range owners {
		if asked[i].(*redis.StringCmd).Val() == note {
			return owner, nil
		}
	}
	if err := firstFailure(asked); err != nil { // of each node: a missing note must not hide it
		return Ref{}, cart.Unavailable("look for earlier redemption", err)
	}
	return Ref{}, nil
}

// Moved returns the mark that the latest hand-over of an agent's cart from a guest's token left, "" if there was none, and the fresh
// token that the cart went to; the zero Ref if the shopper did not keep the agent, or if the lines went into a cart in use.
func (s *Store) Moved(ctx context.Context, guest Ref) (to Ref, mark string, err error) {
	mark, err = s.Client.HGet(ctx, guest.movedKey(), "t").Result()
	switch {
	case isMissing(err):
		return Ref{}, "", nil
	case err != nil:
		return Ref{}, "", cart.Unavailable("look where the cart has moved", err)
	case strings.HasPrefix(mark, nowhere):
		return Ref{}, mark, nil
	}
	return RefOfTag(mark), mark, nil
}

// ForgetMove removes what Moved reports.
func (s *Store) ForgetMove(ctx context.Context, guest Ref) error {
	return s.Delete(ctx, "end cart", guest.movedKey())
}

// MovedTo is the mark that a claim leaves for Moved: the fresh token that the agent follows to, or the
// zero Ref for none, which the name of the hand-over tells from others. The mark "" leaves none.
func MovedTo(to Ref, name string) (mark string) {
	if to.key == "" {
		return nowhere + name
	}
	return to.tag()
}

const nowhere = "-"
