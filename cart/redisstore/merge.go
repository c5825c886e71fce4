package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"commerce/cart"
	"commerce/cart/redisstore/layout"
	"commerce/cart/transfer"
)

// The steps of a transfer, as package transfer decides them: see service/merge.go.

// offersOutlive is how much longer the quantities that a guest's cart has offered are stored than its claim, so that the cart
// can never be merged twice.
const offersOutlive = 7 * 24 * time.Hour

// Claimed is a guest's cart that is set aside for its new owner.
type Claimed struct {
	transfer.Aside
	Again bool // an earlier request had claimed it; the token may have a newer cart

	guest  Ref
	master *master // whose clock its times are by
}

// Reserve reserves room for a guest's cart, as transfer.Reserve does, under a note of this name, if the condition allows the
// owner's cart to change; otherwise it returns *VersionError.
func (s *Store) Reserve(
	ctx context.Context, owner, guest Ref, note string, needs cart.Reservation, limits cart.Limits, on Conditions,
) error {
	needs.CartID = transfer.ShortID(needs.CartID)
	_, err := s.step(ctx, "reserve room for merge", []string{owner.CartKey()}, 0, func(found *Slot) (*commit, error) {
		held, err := layout.Parse(found.hashes[0])
		if err != nil {
			return nil, err
		}
		if !on.Allows(&held.Cart) && !held.Pending.Has(note) {
			return nil, &VersionError{held.Cart}
		}
		cell, err := transfer.Reserve(held.Cell, cart.Note{Name: note, Guest: guest.TokenDigest(), At: found.Now, Reservation: needs}, limits)
		if err != nil {
			return nil, err
		}
		return found.become(&held, cell), nil
	})
	return err
}

// VersionError means that If-Match does not allow a cart, as it is, to change.
type VersionError struct{ Cart cart.Cart }

func (e *VersionError) Error() string { return "redisstore: the cart has another version" }

// Claim sets the guest's cart aside under a note, as transfer.Guest.Claim does. moved is the mark that a new claim leaves under
// the token (see MovedTo); "" for none.
//
// It waits for replicas, for a limited time, so that a failover does not give the cart to
// another owner. It continues without them: otherwise no request could see the cart.
func (s *Store) Claim(ctx context.Context, owner, guest Ref, note string, needs cart.Reservation, moved string) (claimed Claimed, err error) {
	at, err := s.guestMaster(ctx, owner, guest)
	if err != nil {
		return Claimed{}, err
	}
	defer func() { at.noteFailure(err) }()
	mine := map[string]bool{} // the names of the claims that this call may have made: a failover can lose the first
	keys := []string{guest.CartKey(), guest.claimedKey(), guest.KeysKey()}
	_, err = s.step(ctx, "claim guest cart", keys, claimWait, func(found *Slot) (*commit, error) {
		held, err := layout.Parse(found.hashes[0])
		if err != nil {
			return nil, err
		}
		slot := transfer.Guest{Cell: held.Cell, Keys: layout.ParseKeys(found.hashes[2])}
		if slot.Aside, err = layout.ParseAside(found.hashes[1], slot.Keys); err != nil {
			return nil, err
		}
		by := transfer.Claim{Owner: owner.tag(), Note: note, Name: s.newMark()}
		after, err := slot.Claim(by, needs)
		if err != nil {
			return nil, err
		}
		claimed = Claimed{*after.Aside, slot.Aside != nil && !mine[after.Aside.Name], guest, found.at.master}
		if slot.Aside != nil {
			return found.confirmClaim(layout.EncodeClaim(slot.Aside.Claim)), nil
		}
		mine[by.Name] = true
		return s.setAside(found, &held, after, guest, moved), nil
	})
	return claimed, err
}

// confirmClaim writes a claim again, since a wait for replicas covers only what its own connection has written.
func (s *Slot) confirmClaim(claim string) *commit {
	c := s.commitTo(1)
	c.check(s.keys[1], "o", claim)
	c.write("HSET", s.keys[1], "o", claim)
	return c
}

// setAside moves the hash of the cart. What stays is written with the next fence: without it, a late copy
// of a commit that has expected no cart could still be applied.
func (s *Store) setAside(found *Slot, held *layout.Hash, after transfer.Guest, guest Ref, moved string) *commit {
	c := found.commit()
	claimed := guest.claimedKey()
	c.check(claimed, "o", "")
	c.write("RENAME", found.keys[0], claimed)
	c.write("HSET", claimed, "o", layout.EncodeClaim(after.Aside.Claim), "k", layout.EncodeUses(after.Aside.Keys))
	c.write("PEXPIRE", claimed, s.TTL.Customer.Milliseconds())
	if moved != "" {
		c.write("HSET", guest.movedKey(), "t", moved)
		c.write("PEXPIRE", guest.movedKey(), s.TTL.Guest.Milliseconds())
	}
	c.encode(&layout.Hash{}, after.Cell, found.ttl, found.Now)
	c.announce(held.Listened, guest, "gone")
	return c
}

// Combine finds which codes have coupons that combine with others.
type Combine func(ctx context.Context, codes []string) (map[string]bool, error)

// Apply adds a claimed cart to the owner's, as transfer.Arrival.Apply does. It reports what this call did; nil when an earlier
// call did it all. newID is the ID of a cart that it creates. After ErrUnconfirmed it is done, and the report is valid.
func (s *Store) Apply(
	ctx context.Context, owner Ref, from Claimed, rules transfer.MergeRules, combine Combine, newID string,
) (report *cart.MergeReport, err error) {
	arrival := transfer.Arrival{
		Aside: from.Aside, Guest: from.guest.TokenDigest(), MergeRules: rules, NewID: newID, Undoable: s.Undoable && !owner.guest,
	}
	keys := []string{owner.CartKey(), owner.offeredKey(from.ID), owner.KeysKey(), owner.cameKey()}
	copies, err := s.step(ctx, "apply merge", keys, replicaWait, func(found *Slot) (*commit, error) {
		held, to, err := layout.ParseOwner(found.hashes)
		if err != nil {
			return nil, err
		}
		behind, err := found.at.aheadOf(ctx, from.master)
		if err != nil {
			return nil, cart.Unavailable("ask time", err)
		}
		if codes := slices.Concat(to.Coupons, from.Coupons); len(codes) > 1 {
			if arrival.Combine, err = combine(ctx, codes); err != nil {
				return nil, err
			}
		}
		arrival.Behind, arrival.Mark = time.Duration(behind)*time.Millisecond, s.newMark()
		after, now := arrival.Apply(to, found.Now)
		c := found.become(&held, after.Cell)
		c.made = func() { report = cmp.Or(now, report) } // a repeat that waits for replicas has nothing to report
		c.change(keys[1], layout.Offers(to.Offers, after.Offers))
		c.write("PEXPIRE", keys[1], (s.TTL.Customer + offersOutlive).Milliseconds())
		found.keyUses(c, 2, to.Keys, after.Keys)
		c.came(keys[3], to.Came, after.Came)
		if now != nil {
			c.announce(after.Listened, owner, after.Tag())
		}
		return c, nil
	})
	switch {
	case err != nil:
		return nil, err
	case !copies.survivesFailover():
		return report, ErrUnconfirmed
	}
	return report, nil
}

// keyUses adds to a commit the writes that turn the idempotency keys before into those after. Each that is set must still be as it
// was read.
func (s *Slot) keyUses(c *commit, hash int, before, after map[string]cart.KeyUse) {
	key, m := s.keys[hash], layout.KeyUses(before, after)
	for i := 0; i < len(m.Set); i += 2 {
		digest := m.Set[i].(string)
		c.check(key, digest, s.Get(hash, digest))
	}
	c.change(key, m)
	if len(m.Set) > 0 {
		c.write("PEXPIRE", key, cart.KeyLife.Milliseconds())
	}
}

// came adds to a commit the writes that turn what has come before into that after.
func (c *commit) came(key string, before, after map[string]transfer.CameIn) {
	m := layout.Came(before, after)
	c.change(key, m)
	if len(m.Set) > 0 {
		c.write("PEXPIRE", key, transfer.UndoLife.Milliseconds())
	}
}

// ErrUnconfirmed means that not every replica has confirmed what a step did. The claimed cart must stay, since a failover may
// lose the merged lines.
var ErrUnconfirmed = errors.New("redisstore: not confirmed by every replica")

// Finish deletes a claimed cart. If the token has another claim now, it deletes nothing and returns another: a failover may have
// lost this claim, and the cart been claimed again, with more lines. Call it only after Apply has succeeded.
func (s *Store) Finish(ctx context.Context, guest Ref, claimed Claimed) (another bool, err error) {
	_, err = s.step(ctx, "finish merge", []string{guest.claimedKey()}, 0, func(found *Slot) (*commit, error) {
		claim, now := layout.EncodeClaim(claimed.Claim), found.Get(0, "o")
		if another = now != claim && now != ""; now != claim {
			return nil, nil
		}
		c := found.commit()
		c.check(found.keys[0], "o", claim)
		c.delete(found.keys[0])
		return c, nil
	})
	return another, err
}

// Forget deletes the notes of finished merges.
func (s *Store) Forget(ctx context.Context, owner Ref, notes ...string) error {
	return s.forget(ctx, owner, func(c cart.Cell, _ time.Time) cart.Cell { return transfer.Forget(c, notes...) })
}

// Release deletes a note that this request could not claim under, as transfer.Release does.
func (s *Store) Release(ctx context.Context, owner Ref, note string) error {
	return s.forget(ctx, owner, func(c cart.Cell, _ time.Time) cart.Cell { return transfer.Release(c, note) })
}

// ForgetOld deletes a note without a claim, as transfer.ForgetOld does. If its lines have arrived, the claim is finished, or a
// failover has lost it. So every replica must confirm them first: ErrUnconfirmed.
func (s *Store) ForgetOld(ctx context.Context, owner Ref, note cart.Note) error {
	if note.Applied {
		copies, err := s.step(ctx, "confirm merge", []string{owner.CartKey()}, replicaWait, func(found *Slot) (*commit, error) {
			held, err := layout.Parse(found.hashes[0])
			return found.become(&held, held.Cell), err
		})
		if err == nil && !copies.survivesFailover() {
			err = ErrUnconfirmed
		}
		if err != nil {
			return err
		}
	}
	return s.forget(ctx, owner, func(c cart.Cell, now time.Time) cart.Cell { return transfer.ForgetOld(c, note, now) })
}

func (s *Store) forget(ctx context.Context, owner Ref, rule func(cart.Cell, time.Time) cart.Cell) error {
	_, err := s.step(ctx, "forget merge", []string{owner.CartKey()}, 0, func(found *Slot) (*commit, error) {
		held, err := layout.Parse(found.hashes[0])
		cell := rule(held.Cell, found.Now)
		if err != nil || len(cell.Pending) == len(held.Pending) {
			return nil, err
		}
		return found.become(&held, cell), nil
	})
	return err
}
