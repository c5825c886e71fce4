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

type Replica struct {
	Server

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
	seen.refused, err = cause.OfPostgres(r.Checks, began, seen.refused), cause.OfPostgres(r.Checks, began, err)
	r.mu.Lock()
	before := r.judge.state
	r.judge.next(seen, err, &s.primary)
	after := r.judge.verdict
	r.mu.Unlock()
	if before != after.state {
		r.report(ctx, s.config.Log, after)
	}
	s.config.Observe(r.Name, after.state == OK, after.lag)
}

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

type State string

// The states. Only replicas that are OK serve reads.
const (
	Unchecked State = "unchecked" // it has not been compared with the primary yet
	OK        State = "ok"
	Failing   State = "failing"  // it does not answer
	Lagging   State = "lagging"  // its rows are too old
	IsPrimary State = "primary"  // it is the primary itself, which serves what no replica does
	Promoted  State = "promoted" // it accepts writes, but is not the primary
	Diverged  State = "diverged" // it follows another primary, and has another history
	Foreign   State = "foreign"  // it belongs to another database
)

// verdict is a replica's state, and what follows from it.
type verdict struct {
	state State
	lag   time.Duration // a minimum, if the replica shows none of the samples
	err   error         // of a check that failed
}

type judge struct {
	maxLag time.Duration
	verdict
	previous reading   // of the last check that succeeded
	apart    histories // of the latest check that found them diverged
}

// histories are those of a replica and its primary. If they have diverged, they stay so: a
// replica must be rebuilt, and then it starts anew. A new primary has another timeline.
type histories struct {
	started  int64 // the replica, in Unix microseconds
	timeline int64 // of the primary
}

// next decides after a check, which has an error if it failed. While the primary does not answer,
// the lag does not grow, so the replica keeps its state.
func (j *judge) next(seen reading, err error, p *primary) {
	was, previous := j.verdict, j.previous
	if err != nil {
		j.verdict = verdict{state: Failing, lag: was.lag, err: err}
		return
	}
	j.previous = seen
	latest := p.seen()
	lag, known := p.lag(seen.position)
	limit := j.maxLag
	if was.state == Lagging {
		limit /= 2 // so that its state does not change with each check
	}
	switch {
	case latest.began.IsZero():
		j.verdict = verdict{state: Unchecked}
	case seen.database != latest.database:
		j.verdict = verdict{state: Foreign}
	case !seen.replica && seen.started.Equal(latest.started):
		j.verdict = verdict{state: IsPrimary}
	case !seen.replica:
		j.verdict = verdict{state: Promoted}
	case seen.refused != nil:
		j.verdict = verdict{state: Failing, lag: lag, err: seen.refused}
	case j.diverged(previous, seen, latest):
		j.verdict = verdict{state: Diverged}
	case lag > limit:
		j.verdict = verdict{state: Lagging, lag: lag}
	case known:
		j.verdict = verdict{state: OK, lag: lag}
	default:
		j.verdict = verdict{state: Unchecked, lag: lag}
	}
}

// diverged reports whether a replica has, or had since it was started, more than the primary had
// later, or a later timeline. The positions may be of different timelines, and a replica notes its
// timeline late, so this does not find every replica of another primary at once. The lag finds
// some of the others as soon as the primary's log has grown past theirs.
func (j *judge) diverged(previous, seen, primary reading) bool {
	now := histories{seen.started.UnixMicro(), primary.timeline}
	if previous.started.Equal(seen.started) && previous.ended.Before(primary.began) &&
		(previous.position > primary.position || previous.timeline > primary.timeline) {
		j.apart = now
	}
	return j.apart == now
}
