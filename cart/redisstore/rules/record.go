package rules

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

// Attempt is one try of a change: what a client sends beside the change itself, and what
// the server adds.
type Attempt struct {
	Key         string   // idempotency key; "" for none
	Fingerprint string   // of the request that has the key
	Stamp       string   // of a request without a key that its client stamped; "" for none
	IfMatch     []string // tags (see cart.Cart.Tag), of which one must be the cart's; "*" is any; nil for no condition

	Ignore   []string  // names of merges that cannot be finished now: the change is made without them
	Deadline time.Time // a change that begins later is not made; zero for none
}

// Status is what an attempt came to.
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
