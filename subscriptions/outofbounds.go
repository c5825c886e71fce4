package subscriptions

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// outOfBounds logs rows that break the bounds of the schema and are not shown as they
// are stored. It logs at most once a minute, since callers decide how often such a row is
// read.
type outOfBounds struct {
	log  *slog.Logger
	now  func() time.Time
	last atomic.Int64 // Unix seconds
}

func (o *outOfBounds) warn(s *Subscription) {
	last, now := o.last.Load(), o.now().Unix()
	if now-last < 60 || !o.last.CompareAndSwap(last, now) {
		return
	}
	o.log.Warn("a subscription is not shown as it is stored, because it breaks the bounds of the schema",
		"store", s.StoreID, "subscription", s.ID)
}
