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
	Diverged  State = "diverged" // it is ahead of the primary, so it follows another one
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
	previous reading // of the last check that succeeded
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
	case diverged(previous, latest):
		j.verdict = verdict{state: Diverged}
	default:
		j.verdict = j.byLag(was, lag, known)
	}
}

// diverged reports whether a replica's position is higher than a later one of the primary. The
// positions may be of different timelines, so this does not find every replica of another
// primary. The others lag as soon as the primary's log has grown past their positions.
func diverged(replica, primary reading) bool {
	return replica.ended.Before(primary.began) && replica.position > primary.position
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
	case known, was.state == OK:
		return verdict{state: OK, lag: lag}
	}
	return verdict{state: Unchecked, lag: lag}
}
