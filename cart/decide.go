package cart

import (
	"slices"
	"strings"
	"time"

	"commerce/auth/problem"
)

// Conditions are the parts of a request that decide whether its change is made.
type Conditions struct {
	IfMatch     string // "" for none, "*", or " <id>.<version>.<mark> …" with spaces around each
	Key         string // digest of the idempotency key, "" for none
	Fingerprint string // digest of method, path and body; "" without a key
	Stamp       string // StampSize characters of a digest, also of X-Timestamp; "" with a key, or without either
}

// Allows reports whether IfMatch allows a change of the cart.
func (on *Conditions) Allows(c *Cart) bool {
	return on.IfMatch == "" || on.IfMatch == "*" || strings.Contains(on.IfMatch, " "+c.Tag()+" ")
}

// Request is all that a decision about a cell depends on, beside the cell and the time.
type Request struct {
	Conditions
	Change
	NewID  string        // of a cart that begins here; "": none may
	Mark   string        // of the version that the change makes
	Ignore Notes         // of merges that cannot be finished now
	TTL    time.Duration // of the cart
	Limits Limits
}

// Change is what a request changes.
type Change struct {
	Rule Rule
	List bool // Rule is that of a List

	// Agent is "" unless an agent makes the change: then AgentSees, if it has seen the version that this makes, or
	// AgentCanceled.
	Agent string

	// Shown is what an agent was shown instead of the Moment of a cart, which it begins; "" for nothing.
	Shown string
}

// AgentSees is the Change.Agent of an agent's change.
const AgentSees = "seen"

// Status is what becomes of a request.
type Status string

const (
	Applied    Status = "applied"
	Replayed   Status = "replayed"    // an earlier request applied it; nothing changed now
	MergeFirst Status = "merge_first" // a merge must be finished first; nothing changed
	Refused    Status = "refused"     // nothing changed
	Undecided  Status = "undecided"   // Effect.Needs must be loaded first; nothing changed
)

// Decision is what a request makes of a cell.
type Decision struct {
	Status Status
	Cell   Cell   // afterwards
	Effect Effect // of Applied, Refused and Undecided; of a replayed list with refusals, as it would be decided now, to explain them

	Text    int64  // bytes of text by which Cell has grown; 0 if it has not
	Commits bool   // whether Cell must be stored; otherwise nothing changes
	Use     KeyUse // of Applied and Replayed: what is remembered of the change
}

// refuses makes the decision a refusal that does not come from the rule.
func (d Decision) refuses(code problem.Code) Decision {
	d.Status, d.Effect = Refused, refused(&Refusal{Code: code})
	return d
}

// Decide decides about a request. It is judged in this order: a merge under way, a replay, If-Match, the rule. A refused
// change leaves no trace. An applied one is remembered by its key or its stamp, also if it altered nothing, because its
// repeat may come after a change that it would undo. A change without effect begins no cart; but the outcomes of
// a list are stored under its key, for a repeat.
func (r *Request) Decide(c Cell, now time.Time) Decision {
	d := Decision{Cell: c}
	if c.Pending.hold(r.Ignore) {
		d.Status = MergeFirst
		return d
	}
	if known, conflict := r.repeats(&c, now); conflict {
		return d.refuses(problem.IdempotencyConflict)
	} else if known != nil {
		d.Status, d.Use = Replayed, *known
		if slices.ContainsFunc(known.Ops, func(o OpOutcome) bool { return o.Refusal != nil }) {
			d.Effect = r.Rule(&c, c.Pending.Left(r.Limits), now)
		}
		return d
	}
	if !r.Allows(&c.Cart) {
		return d.refuses(problem.VersionMismatch)
	}
	d.Effect = r.Rule(&c, c.Pending.Left(r.Limits), now)
	switch {
	case d.Effect.Needs != nil:
		d.Status = Undecided
		return d
	case d.Effect.Refused():
		d.Status = Refused
		return d
	}
	if r.Agent == AgentSees && d.Effect.Cart.holds(&c.Cart) { // its list removes codes, and may add them again
		d.Effect.Altered = false
	}
	begins, remembers := d.Effect.Altered && c.ID == "", c.ID == "" && r.List && r.Key != ""
	if (begins || remembers) && r.NewID == "" {
		return d.refuses(problem.RateLimited)
	}
	d.Status, d.Use = Applied, r.use(&d.Effect, now)
	if d.Effect.Altered {
		d.Cell = r.altered(c, d.Effect.Cart, now)
		d.Text = max(d.Cell.StoredText()-c.StoredText(), 0)
	}
	if r.Agent != "" && d.Cell.ID != "" {
		d.Cell.Agent = r.Agent
		if r.Agent == AgentSees {
			d.Cell.seenBy(&c, r.Shown)
		}
	}
	if r.Stamp != "" && d.Cell.ID != "" {
		d.Cell.Stamps = d.Cell.Stamps.With(r.Stamp, d.Use.Line, now)
	}
	used := d.Cell.ID != ""
	d.Commits = d.Effect.Altered || remembers || used && (r.Key != "" || r.Stamp != "" || d.Cell.Agent != c.Agent)
	return d
}

// altered returns the cell with the changed cart as its next version.
func (r *Request) altered(before Cell, changed Cart, now time.Time) Cell {
	after := before
	after.Cart = changed
	if after.ID == "" {
		after.ID = r.NewID
	}
	after.Version, after.Mark = before.Version+1, r.Mark
	after.Removed = before.Removed.since(&before.Cart, &changed, now)
	return after
}

// repeats returns the applied change that the request repeats; nil for none. conflict means that the key belongs to another one.
func (r *Request) repeats(c *Cell, now time.Time) (known *KeyUse, conflict bool) {
	switch {
	case r.Key != "":
		use := c.Key
		if use.Fingerprint == "" || now.Sub(use.At) >= KeyLife {
			return nil, false
		}
		return &use, use.Fingerprint != r.Fingerprint
	case r.Stamp != "":
		if use, ok := c.Stamps.Of(r.Stamp); ok && use.IsRetry(now) {
			return &KeyUse{Line: use.Line}, false
		}
	}
	return nil, false
}

// use is what is remembered of a change that is applied.
func (r *Request) use(s *Effect, now time.Time) KeyUse {
	use := KeyUse{At: now, Fingerprint: r.Fingerprint}
	if !s.Named {
		use.Line = s.Line
	}
	if r.List {
		use.Ops = slices.Grow([]OpOutcome{}, len(s.Ops))
		for i := range s.Ops {
			use.Ops = append(use.Ops, s.Ops[i].outcome())
		}
	}
	return use
}

func (s *Effect) outcome() OpOutcome {
	if s.Problem != nil {
		return OpOutcome{Refusal: &Refusal{Code: s.Problem.Code}}
	}
	return OpOutcome{s.Line, s.Refusal}
}

// KeysKept is how many idempotency keys a cart remembers, the newest, each for KeyLife.
const (
	KeysKept = 256
	KeyLife  = 24 * time.Hour
)

// KeyUse is the change that was applied under an idempotency key.
type KeyUse struct {
	At          time.Time
	Fingerprint string      // of its request
	Line        LineID      // the line that it changed, if its request names another; else ""
	Ops         []OpOutcome // of a list; nil for other changes
}

// OpOutcome is what became of one change of a list.
type OpOutcome struct {
	Line    LineID   // that it changed; "" for none
	Refusal *Refusal // nil if it was not refused
}
