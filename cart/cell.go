package cart

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Cell is what lies in the slot of one cart, as far as changes of the cart depend on it. Everything in it is
// immutable: a decision returns another Cell. The zero value is that of a cart that was never used.
type Cell struct {
	Cart // without ExpiresAt

	Pending  Notes        // merges into this cart that are under way
	Report   *MergeReport // of the latest merge, also after cart.ReportLife; nil for none
	Stamps   Stamps
	Removed  RemovedLines
	Listened Listening

	// Agent has two Moments with a | between: since which the cart's agent alone has changed it, and at which the agent's last change
	// has left it. It is AgentCanceled in a canceled cart, "0.0" in one that a hand-over has begun, and "" in others.
	Agent string

	// UndoneBy is the tag of the customer's cart from which an undo has taken this guest's cart; "" in others. Requests of that
	// customer do not merge it again.
	UndoneBy string

	Expires int64 // when it expires, in seconds by Redis' clock; 0 for what remains of a cart without an ID

	Key KeyUse // the change applied under the request's idempotency key; zero for none
}

// AgentCanceled is the Agent of a cart that its agent has canceled.
const AgentCanceled = "-"

// ByAgent reports whether the agent has made the last change.
func (c *Cell) ByAgent() bool {
	_, last := c.agentMoments()
	return last == c.Moment()
}

// Since returns the Moment since which nobody but the agent has changed the cart: the one now, unless the agent has made the last change.
func (c *Cell) Since() string {
	if since, last := c.agentMoments(); last == c.Moment() {
		return since
	}
	return c.Moment()
}

func (c *Cell) agentMoments() (since, last string) {
	since, last, two := strings.Cut(c.Agent, "|")
	if !two { // of the release before
		return since, since
	}
	return since, last
}

// seenBy notes that the agent has changed what before was. shown is as in Change.
func (c *Cell) seenBy(before *Cell, shown string) {
	since := before.Since()
	if before.ID == "" {
		since = cmp.Or(shown, c.Moment())
	}
	c.Agent = since + "|" + c.Moment()
}

// Listening says until when changes of a cart are announced, and by which command. The zero value: they are not.
type Listening struct {
	Until int64 // seconds by Redis' clock
	By    string
}

// InUse reports whether the cart is kept for its TTL. What remains of an emptied one is kept for remainsLife, which reads do
// not renew.
func (c *Cell) InUse() bool { return c.Cart.InUse() || len(c.Pending) > 0 }

const (
	// remainsLife is how long an emptied cart keeps what recognizes a stale If-Match or a retry.
	remainsLife = 24 * time.Hour

	// Renewals is into how many parts a TTL is divided: it is renewed when one has passed.
	Renewals = 720
)

// Expiring returns the cell with its expiry renewed, if that is due, and without what is over. left is how long the cell
// is then kept; renewed reports whether that was changed.
func (c Cell) Expiring(ttl time.Duration, now time.Time) (_ Cell, left time.Duration, renewed bool) {
	if c.Report != nil && now.Sub(c.Report.At) > ReportLife {
		c.Report = nil
	}
	if c.Listened.Until*1000 < now.UnixMilli() {
		c.Listened = Listening{}
	}
	life := ttl
	switch {
	case c.InUse():
	case c.ID != "":
		life = remainsLife
	default:
		c.Expires = 0
		return c, StampLife, true
	}
	left = time.Duration(c.Expires*1000-now.UnixMilli()) * time.Millisecond
	if left <= life && left > life-life/Renewals {
		return c, left, false
	}
	c.Expires = now.Add(life).Unix()
	return c, life, true
}

// RemovedLines are lines with the bare ID of their product that were removed while the cart held other lines of that
// product, and when. In the next 5 minutes, such an ID names no other line: a second click removes nothing else.
type RemovedLines []RemovedLine

type RemovedLine struct {
	ID LineID
	At int64 // seconds by Redis' clock
}

const (
	removedLife = 5 * time.Minute
	removedKept = 100 // the newest
)

func (r RemovedLines) Has(id LineID, now time.Time) bool {
	return slices.ContainsFunc(r, func(l RemovedLine) bool { return l.ID == id && !l.over(now) })
}

func (l RemovedLine) over(now time.Time) bool { return now.Unix()-l.At > int64(removedLife.Seconds()) }

// Later returns the lines with times by a clock that is ahead.
func (r RemovedLines) Later(ahead time.Duration) RemovedLines {
	r = slices.Clone(r)
	for i := range r {
		r[i].At += int64(ahead.Seconds())
	}
	return r
}

// With returns the lines of both carts, each with its latest time; at most the newest removedKept.
func (r RemovedLines) With(others RemovedLines) RemovedLines {
	all := slices.Concat(others, r)
	slices.SortStableFunc(all, func(a, b RemovedLine) int { return cmp.Compare(b.At, a.At) })
	seen := map[LineID]bool{}
	all = slices.DeleteFunc(all, func(l RemovedLine) bool {
		before := seen[l.ID]
		seen[l.ID] = true
		return before
	})
	return all[:min(len(all), removedKept)]
}

// since returns the lines that count, with those that a change has removed.
func (r RemovedLines) since(before, after *Cart, now time.Time) RemovedLines {
	var all RemovedLines
	next := 0 // of the lines after, which are mostly those before
	for i := range before.Lines {
		id := before.Lines[i].ID
		if next < len(after.Lines) && after.Lines[next].ID == id {
			next++
			continue
		}
		if left := len(after.ofProduct(id)); id.isBare() && !after.Has(id) && 0 < left && left < len(before.ofProduct(id)) {
			all = append(all, RemovedLine{id, now.Unix()})
		}
	}
	if len(all) == 0 {
		return r
	}
	for _, l := range r {
		if !l.over(now) && !after.Has(l.ID) && !slices.ContainsFunc(all, func(newer RemovedLine) bool { return newer.ID == l.ID }) {
			all = append(all, l)
		}
	}
	return all[:min(len(all), removedKept)]
}
