package subscriptions

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"time"
)

// firstTransaction stands for the transaction that wrote the first rows of a Memory. Each
// change has a later one of its own.
const firstTransaction = 1

// memoryChange is the last change of a subscription.
type memoryChange struct {
	change
	deleted time.Time // zero: the subscription exists
}

// newMemoryHistory returns the history of a new database, so that the cursors of another
// process expire.
func newMemoryHistory() history {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	system := int64(binary.BigEndian.Uint64(random[:]))
	return history{database: database{system: system}, ended: firstTransaction + 1}
}

// record makes a change of a subscription the last one. The caller holds the lock.
func (m *Memory) record(of *memoryStore, id int64, deleted time.Time) {
	of.changes = slices.DeleteFunc(of.changes, func(c memoryChange) bool { return c.id == id })
	of.changes = append(of.changes, memoryChange{change{m.history.ended, id}, deleted})
	m.history.ended++
}

// Changes implements Source.
func (m *Memory) Changes(_ context.Context, store int64, q ChangesQuery) (Changes, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var c Changes
	var last change
	if of := m.byStore[store]; of != nil {
		after := of.changesAfter(change{q.After.transaction, q.After.id})
		c.More = len(after) > q.Limit
		for _, at := range after[:min(q.Limit, len(after))] {
			of.show(&c, at)
			last = at.change
		}
	}
	return m.history.result(q.After, c, last)
}

func (of *memoryStore) changesAfter(c change) []memoryChange {
	at, _ := slices.BinarySearchFunc(of.changes, c, func(have memoryChange, c change) int {
		if have.after(c) {
			return 1
		}
		return -1
	})
	return of.changes[at:]
}

// show adds a change to c.
func (of *memoryStore) show(c *Changes, change memoryChange) {
	if !change.deleted.IsZero() {
		c.Deleted = append(c.Deleted, Deletion{change.id, change.deleted})
		return
	}
	at, _ := newestFirst(of.rows, change.id)
	c.Changed = append(c.Changed, *of.rows[at])
}
