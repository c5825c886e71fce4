package redisstore

import (
	"context"

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

// Moved reports whether an agent's cart was handed over from a guest's token, and to which fresh token;
// the zero Ref if the shopper did not keep the agent, or if the lines went into a cart in use.
func (s *Store) Moved(ctx context.Context, guest Ref) (to Ref, moved bool, err error) {
	tag, err := s.Client.HGet(ctx, guest.movedKey(), "t").Result()
	switch {
	case isMissing(err):
		return Ref{}, false, nil
	case err != nil:
		return Ref{}, false, cart.Unavailable("look where the cart has moved", err)
	case tag == nowhere:
		return Ref{}, true, nil
	}
	return RefOfTag(tag), true, nil
}

// ForgetMove removes what Moved reports.
func (s *Store) ForgetMove(ctx context.Context, guest Ref) error {
	return s.Delete(ctx, "end cart", guest.movedKey())
}

// MovedTo is the mark that a claim leaves for Moved: the fresh token that the agent follows to, or the
// zero Ref for none. The mark "" leaves none.
func MovedTo(to Ref) (mark string) {
	if to.key == "" {
		return nowhere
	}
	return to.tag()
}

const nowhere = "-"
