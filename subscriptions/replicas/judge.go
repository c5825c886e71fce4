package replicas

import "time"

// State is what a check found out about a replica.
type State string

// The states. Only replicas that are OK serve reads.
const (
	Unchecked State = "unchecked" // it was not compared to the primary yet
	OK        State = "ok"
	Failing   State = "failing"  // it does not answer
	Lagging   State = "lagging"  // its rows are too old
	IsPrimary State = "primary"  // it is the primary itself, which serves what no replica does
	Promoted  State = "promoted" // it accepts writes, but is not the primary
	Diverged  State = "diverged" // it follows another primary, and has what the primary lacks
	Foreign   State = "foreign"  // it belongs to another database
)

// verdict is a replica's state, and what follows from it.
type verdict struct {
	state State
	lag   time.Duration // at least, if it shows none of the samples
	err   error         // of a check that failed
}

// judge decides about one replica.
type judge struct {
	maxLag time.Duration
	verdict
	previous reading // of the last check that succeeded

	// ahead is set when the replica was found to have diverged.
	ahead *pair
}

// pair are a replica and the primary to which it was compared.
type pair struct{ replica, primary reading }

// same reports whether both are the servers that they were, and neither has restarted.
func (p *pair) same(replica, primary reading) bool {
	return p.replica.started.Equal(replica.started) && p.primary.started.Equal(primary.started) && p.primary.timeline == primary.timeline
}

func newJudge(maxLag time.Duration) judge {
	return judge{maxLag: maxLag, verdict: verdict{state: Unchecked}}
}

// fail is for a check that failed.
func (j *judge) fail(err error) { j.verdict = verdict{state: Failing, lag: j.lag, err: err} }

// next is for a check that succeeded. While the primary does not answer, the lag is what it was
// or less, so the decision stays.
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
	case j.diverged(previous, seen, latest):
		j.verdict = verdict{state: Diverged}
	default:
		j.verdict = j.byLag(was, lag, known)
	}
}

// diverged reports whether a replica had more than the primary had later. Both positions may be
// of different timelines, so this does not find every replica of another primary. The lag
// finds the others as soon as the primary's log has grown past theirs.
//
// No replica gets back to the primary's history while it runs. So this holds until one of them
// restarts or the primary is another one, also if the primary does not answer, and when its log has
// grown past the replica's.
func (j *judge) diverged(previous, seen, primary reading) bool {
	if j.ahead != nil && !j.ahead.same(seen, primary) {
		j.ahead = nil
	}
	if previous.started.Equal(seen.started) && previous.ended.Before(primary.began) && previous.position > primary.position {
		j.ahead = &pair{seen, primary}
	}
	return j.ahead != nil
}

// byLag decides about a replica that belongs to the primary. One that lagged must catch up
// half of the maximum, so that its state does not change with each check.
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
