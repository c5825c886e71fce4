package replicas

import "time"

// State is the result of the checks of a replica.
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

// judge decides about one replica.
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

func newJudge(maxLag time.Duration) judge {
	return judge{maxLag: maxLag, verdict: verdict{state: Unchecked}}
}

// fail is for a check that failed.
func (j *judge) fail(err error) { j.verdict = verdict{state: Failing, lag: j.lag, err: err} }

// next is for a check that succeeded. While the primary does not answer, the lag does not grow,
// so the replica keeps its state.
func (j *judge) next(seen reading, p *primary) {
	was, previous := j.verdict, j.previous
	j.previous = seen
	latest := p.seen()
	lag, known := p.lag(seen.position)
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
	default:
		j.verdict = j.byLag(was, lag, known)
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

// byLag decides about a replica that belongs to the primary. A replica that was lagging must
// reach half of the maximum lag, so that its state does not change with each check.
func (j *judge) byLag(was verdict, lag time.Duration, known bool) verdict {
	limit := j.maxLag
	if was.state == Lagging {
		limit /= 2
	}
	switch {
	case lag > limit:
		return verdict{state: Lagging, lag: lag}
	case known:
		return verdict{state: OK, lag: lag}
	}
	return verdict{state: Unchecked, lag: lag}
}
