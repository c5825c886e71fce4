package subscriptions

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// Cursor is a reader's position in the changes of a store. The zero Cursor is the beginning.
//
// Changes are ordered by the transaction that made them, and then by ID. Transaction IDs are
// comparable only within one history of one database, so a cursor identifies the one in which it was
// made. Its text has a checksum but no signature, so that it stays valid as long as the data: a
// forged one misleads only the client that forged it.
type Cursor struct {
	Database Database

	// Timeline is the mark of the latest timeline that the reader has seen, 0 if the
	// database had none.
	Timeline int64

	// Log is a position in the write-ahead log. Everything that the reader has seen was
	// committed before it. 0: the reader has seen nothing.
	Log uint64

	// Since is a transaction. All transactions below it had ended when the reader started, or saw its first change.
	Since uint64

	// Change is the last one that the reader has seen, zero if it has seen none.
	Change
}

// Database identifies a database and its copies.
type Database struct {
	System int64  // the system identifier of its server
	OID    uint32 // its object ID
}

// Change is the place of a change in the order of changes.
type Change struct {
	Transaction uint64
	ID          int64
}

// Compare orders changes: the earlier one is negative.
func (c Change) Compare(other Change) int {
	return cmp.Or(cmp.Compare(c.Transaction, other.Transaction), cmp.Compare(c.ID, other.ID))
}

const (
	cursorVersion = 1
	cursorSum     = 8   // bytes of the checksum
	maxCursor     = 100 // characters; texts of cursors have at most 96
)

// Text returns a cursor as a store's programs see it.
//
//	version 1 byte · system, timeline 8 bytes · oid 4 bytes ·
//	log, since, transaction, id: uvarint · checksum, 8 bytes
func (c Cursor) Text(store int64) string {
	b := append(make([]byte, 0, maxCursor), cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Database.System))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Timeline))
	b = binary.BigEndian.AppendUint32(b, c.Database.OID)
	for _, v := range [...]uint64{c.Log, c.Since, c.Transaction, uint64(c.ID)} {
		b = binary.AppendUvarint(b, v)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, checksum(b, "changes cursor", store)...))
}

// ParseCursor reads the text of a cursor, as the `next` of an answer or a stream has it. ok is
// true only if exactly this text was made for the same store.
func ParseCursor(s string, store int64) (c Cursor, ok bool) {
	const fixed = 1 + 8 + 8 + 4
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > maxCursor || len(b) < fixed+cursorSum || b[0] != cursorVersion {
		return Cursor{}, false
	}
	c.Database.System = int64(binary.BigEndian.Uint64(b[1:]))
	c.Timeline = int64(binary.BigEndian.Uint64(b[9:]))
	c.Database.OID = binary.BigEndian.Uint32(b[17:])
	rest, id := b[fixed:], uint64(0)
	for _, v := range [...]*uint64{&c.Log, &c.Since, &c.Transaction, &id} {
		n := 0
		if *v, n = binary.Uvarint(rest); n <= 0 {
			return Cursor{}, false
		}
		rest = rest[n:]
	}
	c.ID = int64(id)
	return c, c.Text(store) == s
}

// checksum covers a text of one kind, and whose it is, so that one of another kind or owner is not accepted.
func checksum(b []byte, kind string, owner ...int64) []byte {
	salted := append([]byte(kind), 0)
	for _, id := range owner {
		salted = binary.BigEndian.AppendUint64(salted, uint64(id))
	}
	sum := sha256.Sum256(append(salted, b...))
	return sum[:cursorSum]
}

// History is what a database knows about its past when changes are read. A cursor is valid
// only in a database that has everything that its reader has seen.
//
// The timeline of the write-ahead log changes when a replica is promoted, or a backup is recovered
// up to some time: the part of the log after the fork is lost there. The service records each
// timeline with the position of its fork, before it reads changes on it (subscription_timelines).
type History struct {
	Database Database
	Ended    uint64 // all transactions below have ended, and what they changed is read
	Log      uint64 // position of the log before which everything that is read was committed, perhaps not on disk yet

	Flushed uint64 // up to where the log of a primary was on disk soon afterwards

	Replica  bool
	Replayed uint64 // position up to which a replica has the log

	Latest Timeline // that was recorded; number 0: none yet
	Ours   bool     // it was recorded in this database, not in the original of a copy

	Current int64 // the timeline of the log, 0 on a replica

	// CursorTimeline is the timeline of the cursor, 0 if this database never had it. Later is the
	// number of recorded timelines after it, and LaterFork the first fork after it, 0 if unknown.
	CursorTimeline int64
	Later          int64
	LaterFork      uint64

	Pruned Change // the last deletion of the store that is no longer known; zero for none
}

// Timeline is a timeline that was recorded.
type Timeline struct {
	Number int64 // from 1
	Mark   int64 // random, so that copies that were promoted separately differ
}

// Errors for a database from which no changes can be read.
var (
	ErrOtherDatabase = errors.New("the database is a copy: run `commerce migrate up`, which restarts the changes")
	ErrUnmarked      = errors.New("the server was promoted, and its timeline is not recorded yet")
)

// Ahead reports whether a replica may lack something that a reader has seen, so that it
// cannot decide whether the cursor is valid. If check accepts the cursor, this does not
// matter: the replica shows no change before all transactions up to the cursor's have ended.
func (h *History) Ahead(c Cursor) bool {
	return h.Replica && c.Database == h.Database && h.Replayed < c.Log
}

// Result completes the changes c after a cursor, the last of which is last. The error says
// why they cannot be used. A replica that is behind the cursor returns no changes yet.
func (h *History) Result(after Cursor, c Changes, last Change) (Changes, error) {
	switch err := h.check(after); {
	case errors.Is(err, ErrCursorExpired) && h.Ahead(after):
		return Changes{Next: after}, nil
	case err != nil:
		return Changes{}, err
	}
	if (after == Cursor{}) { // the reader starts now
		after = Cursor{Database: h.Database, Timeline: h.Latest.Mark, Since: h.Ended}
	}
	if (last != Change{}) {
		if (after.Change == Change{}) { // nothing was seen before. Since may be of a timeline that lost transactions
			after.Since = h.Ended
		}
		after.Change, after.Timeline, after.Log = last, h.Latest.Mark, max(after.Log, h.Log)
	}
	c.Next = after
	return c, nil
}

// check returns ErrCursorExpired if the database may lack something that the reader has
// seen, or a deletion that it has not seen.
func (h *History) check(c Cursor) error {
	switch {
	case h.Latest.Number != 0 && !h.Ours:
		return Unavailable(ErrOtherDatabase)
	case !h.Replica && h.Current > h.Latest.Number:
		return Unavailable(ErrUnmarked)
	case c == Cursor{}:
		return nil
	case c.Database != h.Database, !h.has(c):
		return ErrCursorExpired
	// A deletion after the cursor is no longer known. Deletions from before the reader started do
	// not matter: it has not seen those subscriptions.
	case h.Pruned.Compare(c.Change) > 0 && h.Pruned.Transaction >= c.Since:
		return ErrCursorExpired
	}
	return nil
}

// has reports whether the database has everything that the reader has seen.
func (h *History) has(c Cursor) bool {
	switch {
	case c.Timeline == 0:
		return h.Latest.Number == 0 || c.Transaction == 0
	case h.CursorTimeline == 0:
		return false
	case !h.Replica && h.Log < c.Log: // an earlier state, such as a snapshot of the disk
		return false
	case h.Later == 0:
		return true
	}
	// A timeline without a row may have begun and ended between two others.
	complete := h.Latest.Number == h.CursorTimeline+h.Later
	return complete && c.Log <= h.LaterFork
}
