package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"commerce/auth/script"
	"commerce/cart"
	"commerce/cart/money"
)

// The steps that undo a merge. service/undo.go combines them.

// ErrNoMerge means that a merge is unknown, or too long ago.
var ErrNoMerge = errors.New("redisstore: no such merge")

// Undoable is a merge that can be undone, with the customer's cart as it is now.
type Undoable struct {
	Cart   cart.Cart
	Came   cart.CameIn
	Undone bool // already
}

// FindMerge returns the merge into a customer's cart that has the ID. Errors: ErrNoMerge.
func (s *Store) FindMerge(ctx context.Context, owner Ref, id string) (Undoable, error) {
	if !isName(id) {
		return Undoable{}, ErrNoMerge
	}
	at, err := s.masterOf(ctx, owner.cartKey())
	if err != nil {
		return Undoable{}, cart.Unavailable("find master", err)
	}
	// The cart comes first: if a merge brings more in between, the cart has another version.
	hashes, err := s.ask(ctx, at, []string{owner.cartKey(), owner.cameKey(id)})
	if err != nil {
		return Undoable{}, cart.Unavailable("read merge", err)
	}
	stored, err := parseMembers(membersOf(hashes[0], nil))
	flat, failed := membersOf(hashes[1], nil)
	if err = cmp.Or(err, failed); err == nil && len(flat) == 0 {
		return Undoable{}, ErrNoMerge
	}
	u := Undoable{Cart: stored.Cart}
	if err == nil {
		u.Came, u.Undone, err = parseCame(flat)
	}
	if err != nil {
		return Undoable{}, cart.Unavailable("read merge", err)
	}
	return u, nil
}

func parseCame(flat []string) (in cart.CameIn, undone bool, err error) {
	in.Lines = map[cart.LineID]cart.CameLine{}
	for i := 0; i+1 < len(flat); i += 2 {
		member, value := flat[i], flat[i+1]
		if !ofLine(member) {
			switch member {
			case "u":
				undone = true
			case "c":
				in.Coupon = value
			case "d":
				in.Metadata, err = decodeMetadata(value)
			}
		} else {
			id, part, _ := strings.Cut(member, ":")
			line := in.Lines[cart.LineID(id)]
			switch part {
			case "n":
				line.Notice = value
			case "m":
				line.Metadata, err = decodeMetadata(value)
			default:
				var price int64
				_, err = fmt.Sscan(value, &line.Before, &line.After, &price)
				line.Price = money.Amount(price)
			}
			in.Lines[cart.LineID(id)] = line
		}
		if err != nil {
			return in, undone, fmt.Errorf("%w: what a merge has brought: %w", errLayout, err)
		}
	}
	return in, undone, nil
}

// BeginUndone stores the guest's cart that gets what is taken out of a customer's. The token must be fresh. After
// ErrUnconfirmed, a failover may lose the cart.
func (s *Store) BeginUndone(ctx context.Context, customer, guest Ref, c cart.Cart) error {
	at, err := s.masterOf(ctx, guest.cartKey())
	if err != nil {
		return cart.Unavailable("find master", err)
	}
	args := []any{s.TTL.Guest.Milliseconds(), newMark(), "i", c.ID, "u", customer.tag()}
	set := func(member, value string) {
		if value != "" {
			args = append(args, member, value)
		}
	}
	for i, l := range c.Lines {
		id := string(l.ID)
		set(id, fmt.Sprintf("%d %d %d", l.Quantity, i+1, l.AddedPrice))
		set(id+":f", encodeFields(l.Fields))
		set(id+":n", l.Notice)
		set(id+":m", encodeMetadata(l.Metadata))
	}
	set("c", c.Coupon)
	set("d", encodeMetadata(c.Metadata))
	cmd, copies := s.run(ctx, at, s.scripts["begin"], replicaWait, script.Repeatable, []string{guest.cartKey()}, append(args, "l", layout)...)
	switch {
	case cmd.Err() != nil:
		return cart.Unavailable("begin guest's cart", cmd.Err())
	case !copies.survivesFailover():
		return ErrUnconfirmed
	}
	return nil
}

// DropUndone deletes the cart of BeginUndone. Call it only if Undo has not told its name, and never will.
func (s *Store) DropUndone(ctx context.Context, guest Ref) {
	_ = s.Client.Del(ctx, guest.cartKey()).Err() // otherwise it expires
}

// Undo takes a merge out of the customer's cart, if the cart is still the one that was found, and the merge is not
// undone. It returns the name under which the merge is undone, and the adjusted lines of that: name and u, or those
// of an earlier call. The name "" means that the cart has changed. After ErrUnconfirmed, a failover may take back
// what was done, and a repeat tells whether it has.
func (s *Store) Undo(ctx context.Context, owner Ref, id, name string, found Undoable, u cart.Undone) (string, []cart.Adjustment, error) {
	at, err := s.masterOf(ctx, owner.cartKey())
	if err != nil {
		return "", nil, cart.Unavailable("find master", err)
	}
	tag := ""
	if !found.Undone {
		tag = found.Cart.Tag()
	}
	args := append([]any{s.ttlOf(owner).Milliseconds(), tag, name, encodeAdjusted(u.Adjusted), newMark()}, changedMembers(found.Cart, u)...)
	// Once: a copy that arrives after the reply to another one could find the version again, after a failover.
	cmd, copies := s.run(ctx, at, s.scripts["undo"], replicaWait, script.Once, []string{owner.cartKey(), owner.cameKey(id)}, args...)
	reply, err := cmd.Slice()
	switch {
	case err != nil:
		return "", nil, cart.Unavailable("undo merge", err)
	case reply[0] == "unknown":
		return "", nil, ErrNoMerge
	case reply[0] == "changed":
		return "", nil, nil
	}
	s.announced(reply, 3)
	adjusted, err := parseAdjusted(strings.Fields(reply[2].(string)))
	if err != nil {
		return "", nil, cart.Unavailable("undo merge", err)
	}
	if !copies.survivesFailover() {
		err = ErrUnconfirmed
	}
	return reply[1].(string), adjusted, err
}

// changedMembers are the members of the customer's cart that an undo changes, as undo.lua has them.
func changedMembers(before cart.Cart, u cart.Undone) (members []any) {
	for _, was := range before.Lines {
		id := string(was.ID)
		if !u.Customer.Has(was.ID) {
			members = append(members, id, "", id+":f", "", id+":n", "", id+":m", "")
			continue
		}
		left := u.Customer.Line(was.ID)
		if left.Quantity != was.Quantity {
			members = append(members, id, strconv.FormatInt(left.Quantity, 10))
		}
		if left.Notice != was.Notice {
			members = append(members, id+":n", left.Notice)
		}
		if len(left.Metadata) != len(was.Metadata) {
			members = append(members, id+":m", encodeMetadata(left.Metadata))
		}
	}
	if u.Guest.Coupon != "" {
		members = append(members, "c", "")
	}
	if u.Guest.Metadata != nil {
		members = append(members, "d", encodeMetadata(u.Customer.Metadata))
	}
	return members
}

// encodeAdjusted is the inverse of parseAdjusted, with spaces between the words.
func encodeAdjusted(all []cart.Adjustment) (text string) {
	for _, a := range all {
		text += fmt.Sprintf(" %s %d %d %s", a.Line, a.Requested, a.Kept, a.Code)
	}
	return text
}
