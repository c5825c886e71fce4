package redisstore_test

import (
	"maps"
	"time"

	"commerce/cart"
)

// Record is a cart with all that a merge depends on. The zero value is that of a cart that
// was never used. Methods do not change it.
type Record struct {
	Cart   cart.Cart
	Memory Memory
	Merges map[string]cart.Reservation // of a customer's cart: the merges under way, by the name of their note
	Merged *cart.MergeReport           // the latest merge, until it is ReportLife ago; nil for none
}

// become replaces the cart. One that begins gets an id.
func (r Record) become(changed cart.Cart, newID string) Record {
	if changed.Version != r.Cart.Version && changed.ID == "" {
		changed.ID = newID
	}
	r.Cart = changed
	return r
}

// EmptiedLife is how long an emptied cart keeps what a stale If-Match is decided by.
const EmptiedLife = 24 * time.Hour

// Life is how long the record lives after a change or a merge; ttl is that of a cart in
// use. Idempotency keys live on their own, each for KeyLife.
func (r Record) Life(ttl time.Duration) time.Duration {
	switch {
	case len(r.Cart.Lines) > 0 || r.Cart.Coupon != "" || r.Cart.Metadata != nil || len(r.Merges) > 0:
		return ttl
	case r.Cart.ID != "":
		return EmptiedLife
	}
	return cart.StampLife
}

// Lapse is what remains of a record that has lived its time: the keys.
func (r Record) Lapse() Record { return Record{Memory: Memory{Keys: maps.Clone(r.Memory.Keys)}} }

// Merge merges a guest's record: its cart (see cart.Merge), and what it remembers, by a clock
// that is behind by the given duration. The room reserved for the guest's cart is free again, and its note,
// which is written again if it is missing, says so. name is that of the report, and newID is for a cart that begins with this merge.
func (r Record) Merge(guest Record, by cart.Strategy, bounds map[cart.LineID]cart.Bounds, before cart.Offers, name, newID string, behind time.Duration, now time.Time) (Record, cart.Offers, *cart.MergeReport) {
	merged, after, report := cart.Merge(r.Cart, guest.Cart, by, bounds, before)
	r = r.become(merged, newID)
	if report != nil {
		report.ID, report.At = name, now
		r.Merged = report
	}
	r.Memory = r.Memory.Join(guest.Memory, behind, now)
	r.Merges = maps.Clone(r.Merges)
	for name, m := range r.Merges {
		if m.CartID == guest.Cart.ID {
			r.Merges[name] = cart.Reservation{CartID: m.CartID, Applied: true}
		}
	}
	if _, noted := r.Merges["m"+name]; !noted {
		r.Merges = putIn(r.Merges, "m"+name, cart.Reservation{CartID: guest.Cart.ID, Applied: true})
	}
	return r, after, report
}

// Merging reports whether a merge into a guest's cart must be finished before the cart is claimed itself.
func (r Record) Merging() bool {
	for _, m := range r.Merges {
		if m.Applied {
			return true
		}
	}
	return false
}

// Claimed is what a guest's token keeps when its cart is claimed: what it remembers, so that a
// retry with the token alone is still recognized, and the merges into its cart.
func (r Record) Claimed() Record { return Record{Memory: r.Memory, Merges: r.Merges} }

const MaxMerges = 32

// Covers reports whether the reservation is enough for the guest's cart as it is now.
func Covers(r cart.Reservation, guest cart.Cart) bool {
	now := guest.RoomNeeded()
	return now.CartID == r.CartID && now.Lines <= r.Lines && now.Text <= r.Text
}

type Room struct {
	Lines int64
	Text  int64 // bytes
}

// Reserve notes a merge, under a name of the caller's making, and reserves its room. The same name
// again replaces its reservation, unless the lines of this cart have arrived under it. Errors: ErrNoRoom, or else ErrCrowded.
func (r Record) Reserve(name string, b cart.Reservation, limits cart.Limits) (Record, error) {
	if held := r.Merges[name]; held.Applied && held.CartID == b.CartID {
		return r, nil
	}
	merges := putIn(maps.Clone(r.Merges), name, b)
	held, all := r.Cart.RoomNeeded(), reserved(merges)
	if b.Lines > 0 && held.Lines+all.Lines > cart.MergeFactor*limits.Lines || b.Text > 0 && held.Text+all.Text > cart.MergeFactor*limits.CartText {
		return r, cart.ErrNoRoom
	}
	if len(merges) > MaxMerges {
		return r, cart.ErrCrowded
	}
	r.Merges = merges
	return r, nil
}

// reserved is the room of merges under way. Those of the same guest's cart share theirs.
func reserved(merges map[string]cart.Reservation) (all Room) {
	perCart := map[string]Room{}
	for _, m := range merges {
		r := perCart[m.CartID]
		perCart[m.CartID] = Room{Lines: max(r.Lines, m.Lines), Text: max(r.Text, m.Text)}
	}
	for _, r := range perCart {
		all.Lines += r.Lines
		all.Text += r.Text
	}
	return all
}

func (r Record) Forget(name string) Record {
	r.Merges = maps.Clone(r.Merges)
	delete(r.Merges, name)
	return r
}
