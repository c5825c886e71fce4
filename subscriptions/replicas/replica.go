package replicas

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"commerce/auth/cause"
)

// Replica is a server of a Set.
type Replica struct {
	Server
	Index int // in Set.All

	wake chan struct{} // receives when a read has failed

	// failures counts the reads that failed. excused is how many of them came before a check
	// that succeeded. The replica is not read while they differ.
	failures, excused atomic.Uint64

	mu    sync.Mutex
	judge judge

	outSince time.Time // when a check found that it serves no reads; zero while it does. Only checks use it
}

func (r *Replica) fit() bool { return r.verdict().state == OK && r.failures.Load() == r.excused.Load() }

func (r *Replica) verdict() verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.judge.verdict
}

// Suspect stops reads from the replica until a check succeeds, and starts a check. Call it
// after a read has failed.
func (r *Replica) Suspect() {
	r.failures.Add(1)
	select {
	case r.wake <- struct{}{}:
	default: // a check is about to begin
	}
}

// check checks a replica and logs a change of its state.
func (s *Set) check(ctx context.Context, r *Replica) {
	failures, began := r.failures.Load(), time.Now()
	seen, err := read(ctx, r.Checks)
	if errors.Is(context.Cause(ctx), context.Canceled) { // the Set stops
		return
	}
	if err == nil {
		r.excused.Store(failures)
	}
	seen.refused = cause.OfPostgres(r.Checks, began, seen.refused)
	before, after := r.decide(seen, cause.OfPostgres(r.Checks, began, err), &s.primary)
	if before.state != after.state {
		r.report(ctx, s.log, after)
	}
	s.observe(r.Name, after.state == OK, after.lag)
}

func (r *Replica) decide(seen reading, err error, p *primary) (before, after verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.judge.verdict
	if err != nil {
		r.judge.fail(err)
	} else {
		r.judge.next(seen, p)
	}
	return before, r.judge.verdict
}

// report logs a change of the state.
func (r *Replica) report(ctx context.Context, log *slog.Logger, now verdict) {
	log = log.With("replica", r.Name, "state", string(now.state))
	switch {
	case now.state == OK && r.outSince.IsZero():
		log.InfoContext(ctx, "a replica serves reads")
	case now.state == OK:
		log.InfoContext(ctx, "a replica serves reads again", "after", cause.Text(time.Since(r.outSince)))
	case now.state == Failing:
		log.WarnContext(ctx, "a replica serves no reads: its check failed", "err", now.err)
	case now.state == Lagging:
		log.WarnContext(ctx, "a replica serves no reads: it lags", "lag", cause.Text(now.lag))
	case now.state == IsPrimary:
		log.InfoContext(ctx, "a replica serves no reads: it is the primary itself")
	case now.state == Promoted:
		log.WarnContext(ctx, "a replica serves no reads: it was promoted, but DATABASE_URL names another primary. Make sure that only one of them accepts writes")
	case now.state == Diverged:
		log.WarnContext(ctx, "a replica serves no reads: it follows another primary, and has another history")
	case now.state == Foreign:
		log.WarnContext(ctx, "a replica serves no reads: it belongs to another database")
	}
	switch {
	case now.state == OK:
		r.outSince = time.Time{}
	case r.outSince.IsZero() && now.state != Unchecked:
		r.outSince = time.Now()
	}
}
