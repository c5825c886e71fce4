package subscriptions

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
)

// memoryTransaction stands for the transaction that wrote all rows of a Memory.
const memoryTransaction = 1

// newMemoryHistory returns the history of a new database, so that the cursors of another
// process expire.
func newMemoryHistory() history {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	system := int64(binary.BigEndian.Uint64(random[:]))
	return history{database: database{system: system}, ended: memoryTransaction + 1}
}

// Changes implements Source.
func (m *Memory) Changes(_ context.Context, store int64, q ChangesQuery) (Changes, error) {
	var c Changes
	var last change
	for _, s := range slices.Backward(m.byStore[store]) {
		at := change{memoryTransaction, s.ID}
		switch {
		case !at.after(change{q.After.transaction, q.After.id}):
		case len(c.Changed) == q.Limit:
			c.More = true
		default:
			c.Changed, last = append(c.Changed, s), at
		}
	}
	return m.history.result(q.After, c, last)
}
