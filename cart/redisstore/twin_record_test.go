package redisstore_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"commerce/auth/problem"
	"commerce/cart"
	
)

// Record is a cart with all that its next change is decided by. The zero value is that of a cart that
// was never used. Methods do not change it. See change.lua.
type Record struct {
	Cart   cart.Cart
	Memory Memory
	Merges map[string]cart.Reservation // of a customer's cart: the merges under way, by the name of their note
	Merged *cart.MergeReport           // the latest merge, until it is ReportLife ago; nil for none
}

// Attempt is one try of a change, with what the client sends and the server adds.
type Attempt struct {
	Key         string   // idempotency key; "" for none
	Fingerprint string   // of the request that has the key
	Stamp       string   // of a request without a key that its client stamped; "" for none
	IfMatch     []string // tags (see cart.Cart.Tag), of which one must be the cart's; "*" is any; nil for no condition

	Ignore   []string  // names of merges that cannot be finished now: the change is made without them
	Deadline time.Time // a change that begins later is not made; zero for none
}

type Status string

// The statuses, in the order in which they are judged. Refused also stands for a reused
// key and for If-Match, which come after Replayed and before the change's own rule.
const (
	Late       Status = "late"        // after its deadline; nothing was done
	MergeFirst Status = "merge_first" // a merge must be finished first; nothing was done
	Replayed   Status = "replayed"    // it was applied before; nothing changed now
	Refused    Status = "refused"
	Applied    Status = "applied"
)

// Check checks what comes before a change's own rule. Applied means that the rule decides. Refused
// comes with a refusal: idempotency_conflict, version_mismatch. Replayed comes with what the Rule
// returned when the change was applied, as moved.
func (r Record) Check(a Attempt, now time.Time) (s Status, moved cart.LineID, refusal *cart.Refusal) {
	if !a.Deadline.IsZero() && now.After(a.Deadline) {
		return Late, "", nil
	}
	for name, m := range r.Merges {
		if !m.Applied && !slices.Contains(a.Ignore, name) {
			return MergeFirst, "", nil
		}
	}
	if applied, ok := r.Memory.appliedUnder(a.Key, now); ok && a.Key != "" {
		if applied.Fingerprint != a.Fingerprint {
			return Refused, "", &cart.Refusal{Code: problem.IdempotencyConflict}
		}
		return Replayed, applied.Line, nil
	}
	if a.Stamp != "" && r.Memory.Stamps[a.Stamp].IsRetry(now) {
		return Replayed, r.Memory.Stamps[a.Stamp].Line, nil
	}
	if a.IfMatch != nil && !slices.Contains(a.IfMatch, "*") && !slices.Contains(a.IfMatch, r.Cart.Tag()) {
		return Refused, "", &cart.Refusal{Code: problem.VersionMismatch}
	}
	return Applied, "", nil
}

// Rule is the rule of one change. reserved is the room that merges under way need. moved is the
// ID of the changed line if the request names the line by another ID; otherwise it is "".
type Rule func(c cart.Cart, reserved Room) (changed cart.Cart, moved cart.LineID, refusal *cart.Refusal)

// Change makes a change if Check allows it. newID is for a cart that begins with this change; ""
// refuses such a change. An applied change is remembered even if it altered nothing: its repeat may
// come after a change that it would undo. A cart that stays unused remembers only a list with a key,
// whose outcomes its repeat tells again. Any other status leaves no trace.
func (r Record) Change(a Attempt, newID string, now time.Time, rule Rule) (Record, Status, cart.LineID, *cart.Refusal) {
	status, moved, refusal := r.Check(a, now)
	if status != Applied {
		return r, status, moved, refusal
	}
	changed, moved, refusal := rule(r.Cart, reserved(r.Merges))
	if refusal != nil {
		return r, Refused, "", refusal
	}
	if changed.Version != r.Cart.Version && changed.ID == "" && newID == "" {
		return r, Refused, "", &cart.Refusal{Code: problem.RateLimited}
	}
	r = r.become(changed, newID)
	list := a.Key != "" && strings.HasPrefix(string(moved), ",")
	if list && r.Cart.ID == "" && newID == "" {
		return r, Refused, "", &cart.Refusal{Code: problem.RateLimited}
	}
	if list || r.Cart.ID != "" {
		r.Memory = r.Memory.remember(a, moved, now)
	}
	return r, Applied, moved, nil
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
// that is behind by the given duration. The room reserved for the guest's cart is free again. name is
// that of the report, and newID is for a cart that begins with this merge.
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

// WithoutReserved returns the limits for a change, so that the lines of merges under way still fit.
func WithoutReserved(l cart.Limits, reserved Room) cart.Limits {
	l.Lines = min(l.Lines, cart.MergeFactor*l.Lines-reserved.Lines)
	l.CartText = min(l.CartText, cart.MergeFactor*l.CartText-reserved.Text)
	return l
}

func (r Record) Forget(name string) Record {
	r.Merges = maps.Clone(r.Merges)
	delete(r.Merges, name)
	return r
}
