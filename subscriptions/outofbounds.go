package subscriptions

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// adaptedRows logs rows that are not shown as they are stored: at most one a minute,
// since callers decide how often such a row is read.
type adaptedRows struct {
	log  *slog.Logger
	last atomic.Int64 // Unix seconds
}

func (a *adaptedRows) warn(s *Subscription) {
	last, now := a.last.Load(), time.Now().Unix()
	if now-last < 60 || !a.last.CompareAndSwap(last, now) {
		return
	}
	a.log.Warn("a subscription breaks the bounds of the schema and is shown as near to its row as possible",
		"store", s.StoreID, "subscription", s.ID)
}
