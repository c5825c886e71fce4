package redisstore

import (
	"context"
	"reflect"

	"commerce/cart"
	"commerce/cart/redisstore/layout"
	"commerce/cart/transfer"
)

// The steps that undo a merge. Package undo combines them.

// Undoable is a merge that can be undone, with the customer's cart as it is now.
type Undoable struct {
	Cart   cart.Cart
	Came   transfer.CameIn // UndoneAs is "" unless it is undone
	Undone transfer.Undone // what an undo makes of the cart
}

// FindMerge returns the merge into a customer's cart that has the ID. Errors: transfer.ErrUnknown.
func (s *Store) FindMerge(ctx context.Context, owner Ref, id string) (u Undoable, err error) {
	_, err = s.step(ctx, "read merge", []string{owner.CartKey(), owner.cameKey()}, 0, func(found *Slot) (*commit, error) {
		to, _, err := found.undoable()
		if err != nil {
			return nil, err
		}
		u.Cart = to.Cart
		if u.Came, err = to.Merge(id, found.Now); err == nil {
			u.Undone = to.Split(id)
		}
		return nil, err
	})
	return u, err
}

// undoable parses the cart and what has come.
func (s *Slot) undoable() (to transfer.Owner, held layout.Hash, err error) {
	held, to, err = layout.ParseOwner([][]string{s.hashes[0], nil, nil, s.hashes[1]})
	return to, held, err
}

// BeginUndone stores the guest's cart that gets what is taken out of a customer's. The token must be fresh. After
// ErrUnconfirmed, a failover may lose the cart.
func (s *Store) BeginUndone(ctx context.Context, customer, guest Ref, c cart.Cart) error {
	mark := s.newMark()
	copies, err := s.step(ctx, "begin guest's cart", []string{guest.CartKey()}, replicaWait, func(found *Slot) (*commit, error) {
		held, err := layout.Parse(found.hashes[0])
		if err != nil {
			return nil, err
		}
		cell := held.Cell
		if cell.ID == "" { // otherwise the reply was lost, and this waits for replicas
			cell = cart.Cell{Cart: c, UndoneBy: customer.tag()}
			cell.Version, cell.Mark = 1, mark
		}
		return found.become(&held, cell), nil
	})
	if err == nil && !copies.survivesFailover() {
		err = ErrUnconfirmed
	}
	return err
}

// DropUndone deletes the cart of BeginUndone. Call it only if Undo has not stored its name, and never will.
func (s *Store) DropUndone(ctx context.Context, guest Ref) {
	_ = s.Client.Del(ctx, guest.CartKey()).Err() // otherwise it expires
}

// Undo takes a merge out of the customer's cart, if the cart is still the one that was found, and the merge is not
// undone. came.UndoneAs is name, or the name of an earlier undo, or "" if the cart has changed. After ErrUnconfirmed, a failover
// may lose the undo, and a repeat finds out. Errors: also transfer.ErrUnknown.
// sent tells whether it may be undone, also after another error.
func (s *Store) Undo(ctx context.Context, owner Ref, id, name string, found Undoable) (came transfer.CameIn, sent bool, err error) {
	mark := s.newMark()
	copies, err := s.step(ctx, "undo merge", []string{owner.CartKey(), owner.cameKey()}, replicaWait, func(now *Slot) (*commit, error) {
		to, held, err := now.undoable()
		if err == nil {
			came, err = to.Merge(id, now.Now)
		}
		switch {
		case err != nil:
			return nil, err
		case came.UndoneAs != "": // a repeat waits for replicas, too
			return now.become(&held, held.Cell), nil
		case to.Tag() != found.Cart.Tag(), !reflect.DeepEqual(to.Split(id).Guest, found.Undone.Guest):
			return nil, nil // also if another merge was undone meanwhile, and took nothing out
		}
		after := to.Undo(id, name, mark, now.Now)
		came = after.Came[id]
		c := now.become(&held, after.Cell)
		c.check(now.keys[1], id, now.Get(1, id)) // it may have expired meanwhile
		if after.Version != held.Version {
			c.announce(after.Listened, owner, after.Tag())
		}
		c.came(now.keys[1], to.Came, after.Came)
		sent = true
		return c, nil
	})
	if err == nil && came.UndoneAs != "" && !copies.survivesFailover() {
		err = ErrUnconfirmed
	}
	return came, sent, err
}
