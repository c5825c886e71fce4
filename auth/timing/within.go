package timing

import (
	"context"
	"time"
)

// Within returns a context for a call that may take at most limit, and no longer than the
// deadline of ctx allows. It has the values of ctx. The caller must call cancel.
//
// It takes no part in the cancellation of ctx: a client that disconnects does not end a call
// that has begun.
func Within(ctx context.Context, limit time.Duration) (_ context.Context, cancel func()) {
	ends := time.Now().Add(limit)
	if earlier, bounded := ctx.Deadline(); bounded && earlier.Before(ends) {
		ends = earlier
	}
	call, cancel := context.WithDeadline(context.WithoutCancel(ctx), ends)
	if ctx.Err() != nil {
		cancel()
	}
	return call, cancel
}
