package subscriptions

import "errors"

// history is what a database knows about its past when changes are read. A cursor is valid
// only in a database that has everything that its reader has seen.
//
// The timeline of the write-ahead log changes when a replica is promoted, or a backup is
// recovered up to some time: the part of the log after the fork is lost there. The service
// records each timeline with the position of its fork, before it reads changes on it
// (subscription_timelines).
type history struct {
	database database
	ended    uint64 // all transactions below have ended, and what they changed is read
	log      uint64 // position of the write-ahead log; everything that is read was committed before it, though perhaps not on disk yet

	flushed uint64 // up to where the log of a primary was on disk soon afterwards

	replica  bool
	replayed uint64 // position up to which a replica has the log

	latest timeline // that was recorded; number 0: none yet
	ours   bool     // it was recorded in this database, not in the original of a copy

	current int64 // the timeline of the log, 0 on a replica

	// cursorTimeline is the timeline of the cursor, 0 if this database never had it. later
	// is the number of recorded timelines after it, and laterFork the position of the first
	// fork after it, 0 if one of them is unknown.
	cursorTimeline int64
	later          int64
	laterFork      uint64

	pruned change // the last deletion of the store that is no longer known; zero for none
}

// timeline is a timeline that was recorded.
type timeline struct {
	number int64 // from 1
	mark   int64 // random, so that copies that were promoted separately differ
}

// change is the place of a change in the order of changes.
type change struct {
	transaction uint64
	id          int64
}

func (c change) after(other change) bool {
	return c.transaction > other.transaction || c.transaction == other.transaction && c.id > other.id
}

// errBehind means that a replica cannot tell whether more changes follow a cursor.
var errBehind = errors.New("the replica is behind the cursor")

// Errors for a cursor, or for a database, from which no changes can be read.
var (
	errOtherDatabase = errors.New("the database is a copy: run `commerce migrate up`, which restarts the changes")
	errUnmarked      = errors.New("the server was promoted, and its timeline is not recorded yet")
)

// ahead reports whether a replica may lack something that a reader has seen, so that it
// cannot decide whether the cursor is valid. If check accepts the cursor, this does not
// matter: the replica shows no change before all transactions up to the cursor's have ended.
func (h *history) ahead(c Cursor) bool {
	return h.replica && c.database == h.database && h.replayed < c.log
}

// shown returns the position up to which the database certainly shows the log.
func (h *history) shown() uint64 {
	if h.replica {
		return h.replayed
	}
	return h.log
}

// result completes the changes c after a cursor, the last of which is last. The error says
// why they cannot be used. A replica that is behind the cursor returns no changes yet.
func (h *history) result(after Cursor, c Changes, last change) (Changes, error) {
	switch err := h.check(after); {
	case errors.Is(err, ErrCursorExpired) && h.ahead(after):
		return Changes{Next: after}, nil
	case err != nil:
		return Changes{}, err
	}
	c.Next = h.start(after)
	if (last != change{}) {
		c.Next = h.next(c.Next, last)
	}
	return c, nil
}

// check returns ErrCursorExpired if the database may lack something that the reader has
// seen, or a deletion that it has not seen.
func (h *history) check(c Cursor) error {
	switch {
	case h.recorded() && !h.ours:
		return unavailable(errOtherDatabase)
	case h.unrecorded():
		return unavailable(errUnmarked)
	case c == Cursor{}:
		return nil
	case c.database != h.database, !h.has(c), h.missed(c):
		return ErrCursorExpired
	}
	return nil
}

// unrecorded reports whether nobody has recorded the timeline of the log yet.
func (h *history) unrecorded() bool { return !h.replica && h.current > h.latest.number }

func (h *history) recorded() bool { return h.latest.number != 0 }

// has reports whether the database has everything that the reader has seen.
func (h *history) has(c Cursor) bool {
	switch {
	case c.timeline == 0:
		return !h.recorded() || c.transaction == 0
	case h.cursorTimeline == 0:
		return false
	case !h.replica && h.log < c.log: // an earlier state, such as a snapshot of the disk
		return false
	case h.later == 0:
		return true
	}
	// A timeline without a row may have begun and ended between two others.
	complete := h.latest.number == h.cursorTimeline+h.later
	return complete && c.log <= h.laterFork
}

// missed reports whether a deletion after the cursor is no longer known. Deletions from
// before the reader started do not matter: it has not seen those subscriptions.
func (h *history) missed(c Cursor) bool {
	return h.pruned.after(change{c.transaction, c.id}) && h.pruned.transaction >= c.since
}

// next returns the cursor of a reader that was at c and has now seen a further change.
func (h *history) next(c Cursor, last change) Cursor {
	c.transaction, c.id = last.transaction, last.id
	c.timeline, c.log = h.latest.mark, max(c.log, h.log)
	return c
}

// start returns c, or for the zero Cursor that of a reader that starts now.
func (h *history) start(c Cursor) Cursor {
	if (c != Cursor{}) {
		return c
	}
	return Cursor{database: h.database, timeline: h.latest.mark, since: h.ended}
}
