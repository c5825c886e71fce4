package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"commerce/auth/script"
	"commerce/cart"
)

// The steps of a merge: scripts, each atomic in its slot and safe to repeat. See service/merge.go.

const (
	// offersOutlive is how much longer the quantities that a guest's cart has offered are stored
	// than its claim, so that the cart can never be merged twice.
	offersOutlive = 7 * 24 * time.Hour
)

// errClaimLate: Redis got a claim after its deadline, and claimed nothing.
var errClaimLate = errors.New("redis got it after its deadline, and changed nothing")

// ShortID returns the prefix of a guest's cart ID that notes store, to keep the cart small in Redis.
func ShortID(cartID string) string {
	if cartID == "" {
		return "-"
	}
	return cartID[:min(len(cartID), 10)]
}

// Claimed is a guest's cart that is set aside for its new owner.
type Claimed struct {
	Cart  cart.Cart
	Again bool   // an earlier request had claimed it; the token may have a newer cart
	Note  string // the note under which it was claimed

	name    string // random, of the claim
	guest   Ref
	removed cart.RemovedLines
	stamps  cart.Stamps
	keys    []any   // digest, value, digest, value, …
	master  *master // whose clock the times in stamps and keys are by
}

var (
	// ErrNothingToMerge means that no guest cart waits to be merged.
	ErrNothingToMerge = errors.New("redisstore: nothing to merge")

	ErrMerging = errors.New("redisstore: a merge into the guest's cart is not finished")

	// ErrUnconfirmed means that not every replica has confirmed what Apply did. The claimed cart
	// must stay, since a failover may lose the merged lines.
	ErrUnconfirmed = errors.New("redisstore: merge not confirmed by every replica")
)

// OtherOwnerError means that another owner's claim on the same token comes first.
type OtherOwnerError struct{ Owner Ref }

func (e *OtherOwnerError) Error() string { return "redisstore: claimed by another owner" }

// GrownError means that the guest's cart was replaced, or has outgrown what was reserved for it.
type GrownError struct{ Needs cart.Reservation }

func (e *GrownError) Error() string { return "redisstore: the guest's cart has changed" }

// Reserve reserves room for a guest's cart and writes a note, under a name that the caller
// chooses, that it is to be merged. After cart.ErrNoRoom or cart.ErrCrowded there is no note.
func (s *Store) Reserve(ctx context.Context, owner, guest Ref, note string, b cart.Reservation, limits cart.Limits) error {
	word, err := s.scripts["reserve"].Run(ctx, s.Client, script.Repeatable, []string{owner.cartKey()},
		note, s.ttlOf(owner).Milliseconds(), guest.TokenDigest(), b.Lines, b.Text, ShortID(b.CartID),
		cart.MergeFactor*limits.Lines, cart.MergeFactor*limits.CartText).Text()
	switch {
	case err != nil:
		return cart.Unavailable("reserve room for merge", err)
	case word == "full":
		return cart.ErrNoRoom
	case word == "crowded":
		return cart.ErrCrowded
	}
	return nil
}

// Claim sets the guest's cart aside under a note. With note "", it only returns an earlier
// claim of this owner. moved is the mark that a new claim leaves under the token (see MovedTo); "" for
// none. Errors: ErrNothingToMerge, ErrMerging, *OtherOwnerError, *GrownError.
//
// It waits for replicas, for a limited time, so that a failover does not give the cart to
// another owner. It continues without them: otherwise no request could see the cart.
func (s *Store) Claim(
	ctx context.Context, owner, guest Ref, note string, b cart.Reservation, moved string,
) (_ Claimed, err error) {
	at, err := s.guestMaster(ctx, owner, guest)
	if err != nil {
		return Claimed{}, err
	}
	defer func() { at.noteFailure(err) }()
	deadline, err := at.deadline(ctx)
	if err != nil {
		return Claimed{}, cart.Unavailable("ask time", err)
	}
	cmd, _ := s.run(ctx, at.located, s.scripts["claim"], claimWait, script.Repeatable,
		[]string{guest.cartKey(), guest.claimedKey(), guest.keysKey(), guest.movedKey()},
		owner.tag(), s.TTL.Customer.Milliseconds(), note, deadline, ShortID(b.CartID), b.Lines, b.Text,
		s.TTL.Guest.Milliseconds(), moved, newMark())
	reply, err := cmd.Slice()
	if err != nil {
		return Claimed{}, cart.Unavailable("claim guest cart", err)
	}
	switch reply[0].(string) {
	case "nothing":
		return Claimed{}, ErrNothingToMerge
	case "merging":
		return Claimed{}, ErrMerging
	case "late":
		return Claimed{}, cart.Unavailable("claim guest cart", errClaimLate)
	case "other":
		return Claimed{}, &OtherOwnerError{Owner: tagged(reply[1].(string))}
	case "grown":
		return Claimed{}, &GrownError{cart.Reservation{CartID: reply[1].(string), Lines: reply[2].(int64), Text: reply[3].(int64)}}
	}
	flat := texts(reply[2].([]any))
	s.announced(reply, 4)
	stored, err := parseCart(flat)
	note, name, _ := strings.Cut(reply[1].(string), " ")
	return Claimed{
		Cart: stored.Cart, Again: reply[0] == "again", Note: note,
		name: name, guest: guest, removed: stored.Removed, stamps: stored.Stamps, keys: reply[3].([]any), master: at.master,
	}, err
}

// Apply adds the lines of a claimed cart to the owner's, each within its bounds (see
// cart.MergeBounds). It reports what this call did; nil when an earlier call did it all. newID is
// the ID of a cart that it creates. After ErrUnconfirmed it is done, and the report is valid.
func (s *Store) Apply(ctx context.Context, owner Ref, c Claimed, by cart.Strategy, bounds map[cart.LineID]cart.Bounds, newID string) (*cart.MergeReport, error) {
	at, err := s.masterOf(ctx, owner.cartKey())
	if err != nil {
		return nil, cart.Unavailable("find master", err)
	}
	shift, err := at.aheadOf(ctx, c.master)
	if err != nil {
		return nil, cart.Unavailable("ask time", err)
	}
	args := []any{
		s.ttlOf(owner).Milliseconds(), (s.TTL.Customer + offersOutlive).Milliseconds(), newID, string(by),
		c.Cart.Coupon, ShortID(c.Cart.ID), shift,
		newMark(),
		strings.TrimPrefix(c.Note, "m"), encodeMetadata(c.Cart.Metadata), c.guest.TokenDigest(), encodeRemoved(c.removed.Later(time.Duration(shift) * time.Millisecond)), len(c.Cart.Lines),
	}
	for _, l := range c.Cart.Lines {
		b := bounds[l.ID]
		args = append(args, string(l.ID), l.Quantity, int64(l.AddedPrice),
			encodeFields(l.Fields), l.Notice, b.Stock, b.PerCart, b.Min, b.Max, b.Step, encodeMetadata(l.Metadata))
	}
	stamps := c.stamps.All()
	args = append(args, len(stamps))
	for stamp, use := range stamps {
		args = append(args, stamp, use.At.UnixMilli(), string(use.Line))
	}
	keys := []string{owner.cartKey(), owner.offeredKey(c.Cart.ID), owner.keysKey()}
	if s.Undoable && !owner.guest {
		keys = append(keys, owner.cameKey(strings.TrimPrefix(c.Note, "m")))
	}
	cmd, copies := s.run(ctx, at, s.scripts["apply"], replicaWait, script.Repeatable, keys, append(args, c.keys...)...)
	reply, err := cmd.Slice()
	if err != nil {
		return nil, cart.Unavailable("apply merge", err)
	}
	s.announced(reply, 1)
	report, err := parseReport(reply[0].(string))
	if err != nil {
		return nil, cart.Unavailable("apply merge", err)
	}
	if !copies.survivesFailover() {
		err = ErrUnconfirmed
	}
	return report, err
}

// Finish deletes a claimed cart. Call it only after Apply has succeeded.
func (s *Store) Finish(ctx context.Context, owner, guest Ref, c Claimed) error {
	err := s.scripts["finish"].Run(ctx, s.Client, script.Repeatable,
		[]string{guest.claimedKey()}, owner.tag()+" "+c.Note+" "+c.name).Err()
	if err != nil {
		return cart.Unavailable("finish merge", err)
	}
	return nil
}

// Forget deletes the notes of finished merges.
func (s *Store) Forget(ctx context.Context, owner Ref, notes ...string) error {
	return s.forget(ctx, owner, 0, true, notes...)
}

// Release deletes a note that this request could not claim under, unless another one has brought the lines under it.
func (s *Store) Release(ctx context.Context, owner Ref, note string) error {
	return s.forget(ctx, owner, 0, false, note)
}

// ForgetOld deletes a note without a claim, if its lines have arrived or it is old by Redis' clock.
func (s *Store) ForgetOld(ctx context.Context, owner Ref, note cart.Note) error {
	age := cart.NoteGrace
	if note.Applied {
		age = 0
	}
	return s.forget(ctx, owner, age, note.Applied, note.Name)
}

func (s *Store) forget(ctx context.Context, owner Ref, age time.Duration, applied bool, notes ...string) error {
	args := []any{s.ttlOf(owner).Milliseconds(), int64(age.Seconds()), 0}
	if applied {
		args[2] = 1
	}
	for _, note := range notes {
		args = append(args, note)
	}
	if err := s.scripts["forget"].Run(ctx, s.Client, script.Repeatable, []string{owner.cartKey()}, args...).Err(); err != nil {
		return cart.Unavailable("forget merge", err)
	}
	return nil
}
