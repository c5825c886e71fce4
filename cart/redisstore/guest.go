package redisstore

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/redisstore/layout"
)

// GuestCart is what is stored for a guest's token whose cart is to be merged.
type GuestCart struct {
	Claimed  bool             // an earlier request has claimed a cart and not finished its merge
	Pending  cart.Notes       // into the token's current cart, which finish first
	Products []int64          // of the token's current cart
	Needs    cart.Reservation // the room that the cart which lies there now needs

	// Undone means that the customer has undone a merge, which has begun the token's current cart: their
	// requests do not merge it again.
	Undone bool

	key    cart.KeyUse // the change applied under the given key; zero for none
	stamps cart.Stamps // of the token's current cart, or of one that was claimed
	now    time.Time   // by the guest's Redis
}

// RepeatOf returns the outcome of a request that repeats a change of the guest's cart, without a cart:
// Replayed, or Refused with idempotency_conflict; nil if it repeats none. It knows the change of an
// idempotency key only if that key was looked up.
func (g GuestCart) RepeatOf(on Conditions) *Outcome {
	switch {
	case on.Key != "" && g.key.Fingerprint == on.Fingerprint:
		return &Outcome{Status: cart.Replayed, ChangedLine: g.key.Line, Ops: g.key.Ops}
	case on.Key != "" && g.key.Fingerprint != "":
		return &Outcome{Status: cart.Refused, Effect: cart.Effect{Refusal: &cart.Refusal{Code: problem.IdempotencyConflict}}}
	case on.Key != "":
	case on.Stamp != "":
		if use, ok := g.stamps.Of(on.Stamp); ok && use.IsRetry(g.now) {
			return &Outcome{Status: cart.Replayed, ChangedLine: use.Line}
		}
	}
	return nil
}

// Mergeable reports whether a request of the customer merges something.
func (g GuestCart) Mergeable() bool {
	return g.Claimed || !g.Undone && (g.Needs.CartID != "" || len(g.Pending) > 0)
}

// FindGuest looks up what waits to be merged under a guest's token, and which changes the
// guest's cart has applied, for a request of another cart. key is the digest of an idempotency key; "" for none.
func (s *Store) FindGuest(ctx context.Context, own, guest Ref, key string) (GuestCart, error) {
	at, err := s.guestMaster(ctx, own, guest)
	if err != nil {
		return GuestCart{}, err
	}
	claimed := redis.NewIntCmd(ctx, "exists", guest.claimedKey())
	others := []redis.Cmder{claimed}
	use := redis.NewStringCmd(ctx, "hget", guest.KeysKey(), key)
	if key != "" {
		others = append(others, use)
	}
	hashes, err := s.ask(ctx, at.located, nil, []string{guest.CartKey()}, others...)
	var g GuestCart
	if err == nil {
		g, err = parseGuest(own, hashes[0], claimed)
	}
	if err == nil && key != "" {
		g.key, err = layout.ParseKeyUse(use.Val()), firstFailure([]redis.Cmder{use})
	}
	at.noteFailure(err)
	if err != nil {
		return GuestCart{}, cart.Unavailable("look for guest cart", err)
	}
	now, err := at.redisNow(ctx)
	if err != nil {
		return GuestCart{}, cart.Unavailable("ask time", err)
	}
	g.now = time.UnixMilli(now)
	return g, nil
}

// LoadWithGuest reads a customer's cart and what waits under a guest's token: in one round trip, or
// in a cluster in two concurrent ones, of which the guest's may take guestTime. If that one fails,
// the GuestCart is zero.
func (s *Store) LoadWithGuest(ctx context.Context, guestTime time.Duration, customer, guest Ref) (Stored, GuestCart, error) {
	if s.clustered() {
		found := make(chan GuestCart, 1)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, guestTime)
			defer cancel()
			g, _ := s.FindGuest(ctx, customer, guest, "")
			found <- g
		}()
		stored, err := s.Load(ctx, customer)
		return stored, <-found, err
	}
	at, err := s.masterOf(ctx, customer.CartKey())
	if err != nil {
		return Stored{}, GuestCart{}, cart.Unavailable("find master", err)
	}
	claimed := redis.NewIntCmd(ctx, "exists", guest.claimedKey())
	hashes, err := s.ask(ctx, at, nil, []string{guest.CartKey(), customer.CartKey()}, claimed)
	if err != nil {
		return Stored{}, GuestCart{}, cart.Unavailable("read cart", err)
	}
	g, _ := parseGuest(customer, hashes[0], claimed)
	stored, err := s.loaded(ctx, at, customer, hashes[1])
	return stored, g, err
}

// parseGuest parses the replies about a guest's token, for a request of another cart.
func parseGuest(own Ref, hash redis.Cmder, claimed *redis.IntCmd) (GuestCart, error) {
	flat, err := membersOf(hash, nil)
	if err := cmp.Or(err, claimed.Err()); err != nil {
		return GuestCart{}, err
	}
	stored, err := layout.ParseAny(flat)
	if err != nil {
		return GuestCart{}, err
	}
	return GuestCart{
		Claimed: claimed.Val() > 0, Undone: stored.UndoneBy != "" && stored.UndoneBy == own.tag(), Pending: stored.Pending,
		Products: stored.ProductIDs(), Needs: stored.RoomNeeded(), stamps: stored.Stamps,
	}, nil
}

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
	claim := layout.ParseClaim(by)
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
