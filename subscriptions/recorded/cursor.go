package recorded

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
)

// Cursor is a reader's position in the changes of a store, or in other records. The zero Cursor is the beginning.
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
	maxCursor     = 100 // characters; texts of cursors have at most 96
)

// Kind is what cursors are for. Those of another kind are not accepted.
type Kind string

// Text returns a cursor of the kind as a store's programs see it.
//
//	version 1 byte · system, timeline 8 bytes · oid 4 bytes ·
//	log, since, transaction, id: uvarint · checksum, 8 bytes
func (k Kind) Text(c Cursor, store int64) string {
	b := append(make([]byte, 0, maxCursor), cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Database.System))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Timeline))
	b = binary.BigEndian.AppendUint32(b, c.Database.OID)
	for _, v := range [...]uint64{c.Log, c.Since, c.Transaction, uint64(c.ID)} {
		b = binary.AppendUvarint(b, v)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, Checksum(b, string(k), store)...))
}

// Parse reads the text of a cursor of the kind, as the `next` of an answer or a stream has it. ok is true only if exactly this
// text was made for the same store.
func (k Kind) Parse(s string, store int64) (c Cursor, ok bool) {
	const fixed = 1 + 8 + 8 + 4
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > maxCursor || len(b) < fixed+SumSize || b[0] != cursorVersion {
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
	return c, k.Text(c, store) == s
}
