package replicas

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"commerce/deploy/assert"
)

// epoch is when the first check begins. Checks follow each other every second.
var epoch = time.Date(2025, 11, 20, 10, 0, 0, 0, time.UTC)

// observed is what a step's checks find: the primary's position, then the replica's.
type observed struct {
	primary, replica uint64
	edit             func(primary, replica *reading) // nil: none
	primaryFails     bool
	replicaFails     bool
}

// decided is what follows.
type decided struct {
	State State
	Lag   time.Duration
}

func promotedTo(system int64) func(_, r *reading) {
	return func(_, r *reading) { r.replica, r.timeline, r.database.system = false, 2, system }
}

func follows(timeline int64) func(_, r *reading) {
	return func(_, r *reading) { r.timeline = timeline }
}

func restarted(_, r *reading) { r.started = epoch.Add(time.Second) }

func refuses(_, r *reading) { r.refused = errors.New("permission denied") }

func onTimeline(n int64) func(p, _ *reading) { return func(p, _ *reading) { p.timeline = n } }

type step struct {
	observed
	want decided
}

const s = time.Second

// judged are what checks find one after another, and what follows.
var judged = map[string][]step{
	"a replica that keeps up": {
		{observed{primary: 10, replica: 10}, decided{OK, 0}},
		{observed{primary: 20, replica: 20}, decided{OK, 0}},
		{observed{primary: 30, replica: 29}, decided{OK, 1 * s}},
	},
	"an idle primary": slices.Repeat([]step{{observed{primary: 10, replica: 10}, decided{OK, 0}}}, 5),
	"one that is behind at the start": {
		{observed{primary: 10, replica: 5}, decided{Unchecked, 0}},
		{observed{primary: 20, replica: 9}, decided{Unchecked, 1 * s}},
		{observed{primary: 30, replica: 10}, decided{OK, 2 * s}},
	},
	"one that never catches up": {
		{observed{primary: 10, replica: 5}, decided{Unchecked, 0}},
		{observed{primary: 20, replica: 5}, decided{Unchecked, 1 * s}},
		{observed{primary: 30, replica: 5}, decided{Unchecked, 2 * s}},
		{observed{primary: 40, replica: 5}, decided{Lagging, 3 * s}},
	},
	"one that lags, and comes back when it lags half as much": {
		{observed{primary: 10, replica: 10}, decided{OK, 0}},
		{observed{primary: 20, replica: 10}, decided{OK, 1 * s}},
		{observed{primary: 30, replica: 10}, decided{OK, 2 * s}},
		{observed{primary: 40, replica: 10}, decided{Lagging, 3 * s}},
		{observed{primary: 50, replica: 35}, decided{Lagging, 2 * s}},
		{observed{primary: 60, replica: 50}, decided{OK, 1 * s}},
		{observed{primary: 70, replica: 50}, decided{OK, 2 * s}},
	},
	"one that fails": {
		{observed{primary: 10, replica: 10}, decided{OK, 0}},
		{observed{primary: 20, replicaFails: true}, decided{Failing, 0}},
		{observed{primary: 20, replica: 20}, decided{OK, 0}},
	},
	"the primary fails": {
		{observed{primary: 10, replica: 10}, decided{OK, 0}},
		{observed{primary: 20, replica: 10}, decided{OK, 1 * s}},
		{observed{primaryFails: true, replica: 10}, decided{OK, 1 * s}},
		{observed{primaryFails: true, replica: 10}, decided{OK, 1 * s}},
		{observed{primaryFails: true, replica: 20}, decided{OK, 0}},
	},
	"the primary never answers": {
		{observed{primaryFails: true, replica: 10}, decided{Unchecked, 0}},
	},
	"the primary itself": {
		{observed{primary: 10, edit: func(p, r *reading) { *r = *p }}, decided{IsPrimary, 0}},
	},
	"a replica that is promoted": {
		{observed{primary: 10, replica: 10}, decided{OK, 0}},
		{observed{primary: 10, replica: 10, edit: promotedTo(1)}, decided{Promoted, 0}},
	},
	"another database": {
		{observed{primary: 10, replica: 10, edit: func(_, r *reading) { r.database.oid++ }}, decided{Foreign, 0}},
		{observed{primary: 10, replica: 10, edit: promotedTo(2)}, decided{Foreign, 0}},
	},
	"a replica of another primary": {
		{observed{primary: 10, replica: 30}, decided{OK, 0}},
		{observed{primary: 20, replica: 30}, decided{Diverged, 0}},
		{observed{primary: 29, replica: 30}, decided{Diverged, 0}},
		{observed{primary: 40, replica: 35}, decided{Diverged, 0}},
		{observed{primary: 40, replica: 40}, decided{Diverged, 0}},
		{observed{primary: 50, replicaFails: true}, decided{Failing, 0}},
		{observed{primary: 50, replica: 50}, decided{Diverged, 0}},
	},
	"a replica of another primary that is rebuilt": {
		{observed{primary: 10, replica: 30}, decided{OK, 0}},
		{observed{primary: 20, replica: 30}, decided{Diverged, 0}},
		{observed{primary: 20, replica: 20, edit: restarted}, decided{OK, 0}},
		{observed{primary: 20, replica: 20, edit: restarted}, decided{OK, 0}},
	},
	"a replica of another primary that becomes the primary": {
		{observed{primary: 10, replica: 30}, decided{OK, 0}},
		{observed{primary: 20, replica: 30}, decided{Diverged, 0}},
		{observed{primary: 40, replica: 40, edit: onTimeline(2)}, decided{OK, 0}},
	},
	"a replica of another primary that is never ahead": {
		{observed{primary: 20, replica: 10, edit: follows(2)}, decided{Unchecked, 0}},
		{observed{primary: 30, replica: 20, edit: follows(2)}, decided{Diverged, 0}},
		{observed{primary: 40, replica: 40, edit: follows(2)}, decided{Diverged, 0}},
	},
	"one that cannot read subscriptions": {
		{observed{primary: 10, replica: 10}, decided{OK, 0}},
		{observed{primary: 20, replica: 20, edit: refuses}, decided{Failing, 0}},
		{observed{primary: 30, replica: 30}, decided{OK, 0}},
	},
	"a replica of another primary, after the primary failed": {
		{observed{primary: 10, replica: 30}, decided{OK, 0}},
		{observed{primary: 20, replica: 30}, decided{Diverged, 0}},
		{observed{primaryFails: true, replica: 30}, decided{Diverged, 0}},
		{observed{primaryFails: true, replicaFails: true}, decided{Failing, 0}},
		{observed{primaryFails: true, replica: 30}, decided{Diverged, 0}},
		{observed{primary: 20, replica: 20, edit: restarted}, decided{OK, 0}},
	},
	"a replica of another primary, after the primary's log has grown past it": {
		{observed{primary: 10, replica: 30}, decided{OK, 0}},
		{observed{primary: 29, replica: 30}, decided{Diverged, 0}},
		{observed{primary: 35, replica: 31}, decided{Diverged, 0}},
		{observed{primary: 36, replica: 32}, decided{Diverged, 0}},
		{observed{primary: 40, replica: 40, edit: onTimeline(2)}, decided{OK, 0}},
	},
	"a failover to a primary that lacks the latest writes": {
		{observed{primary: 90, replica: 80}, decided{Unchecked, 0}},
		{observed{primary: 95, replica: 90}, decided{OK, 1 * s}},
		{observed{primary: 92, replica: 91, edit: onTimeline(2)}, decided{Unchecked, 0}},
		{observed{primary: 94, replica: 93, edit: onTimeline(2)}, decided{OK, 1 * s}},
	},
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, steps := range judged {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, j := primary{log: slog.New(slog.DiscardHandler)}, judge{maxLag: 2500 * time.Millisecond, verdict: verdict{state: Unchecked}}
			for i, step := range steps {
				assert.Equal(t, step.decide(&p, &j, epoch.Add(time.Duration(i)*s)), step.want, "step %d", i)
			}
		})
	}
}

// decide checks the primary at a time, and half a second later the replica.
func (o observed) decide(p *primary, j *judge, at time.Time) decided {
	const half = 500 * time.Millisecond
	one := database{system: 1, oid: 1}
	seen := reading{began: at, ended: at, database: one, started: epoch, position: o.primary, timeline: 1}
	replica := reading{began: at.Add(half), ended: at.Add(half), database: one, started: epoch.Add(-time.Second), replica: true, position: o.replica}
	if o.edit != nil {
		o.edit(&seen, &replica)
	}
	if !o.primaryFails {
		p.add(seen)
	}
	var err error
	if o.replicaFails {
		err = errors.New("connection refused")
	}
	j.next(replica, err, p)
	return decided{j.state, j.lag}
}

func TestPrimary_KeepsTheSamplesOfAnHour(t *testing.T) {
	t.Parallel()
	var p primary
	for i := range 3 * maxSamples {
		p.add(reading{began: epoch.Add(time.Duration(i) * time.Second), position: uint64(i)})
	}
	n := len(p.samples)
	assert.That(t, n <= maxSamples && n >= maxSamples*9/10, "%d samples", n)
	newest := uint64(3*maxSamples - 1)
	lag, known := p.lag(newest - 600)
	assert.That(t, lag == 10*time.Minute && known, "a replica of 10 minutes ago lags %s, known: %t", lag, known)
	lag, known = p.lag(0)
	assert.That(t, lag >= 50*time.Minute && !known, "a replica of 3 hours ago lags %s, known: %t", lag, known)
}

func TestFit_KeepsEachStoreOnItsReplica(t *testing.T) {
	t.Parallel()
	s := New(Config{MaxLag: time.Second, Servers: []Server{{Name: "a"}, {Name: "b"}, {Name: "c"}}})
	names := func(store int64) (names string) {
		for _, at := range s.Fit(store) {
			names += s.All()[at].Name
		}
		return names
	}
	assert.Equal(t, names(1), "", "are fit before they were checked")
	for _, r := range s.All() {
		r.judge.verdict = verdict{state: OK}
	}
	for store, want := range map[int64]string{0: "ab", 1: "bc", 2: "ca", 3: "ab", 7: "bc"} {
		assert.Equal(t, names(store), want, "store %d reads", store)
	}
	s.All()[1].Suspect()
	taken := map[string]int{}
	for store := range int64(300) {
		got := names(store)
		want := "abc"[store%3]
		assert.That(t, want == 'b' || got[0] == want, "store %d reads %s, although nothing is wrong with %c", store, got, want)
		taken[got]++
	}
	assert.Equal(t, taken, map[string]int{"ac": 150, "ca": 150}, "stores by their replicas without b")
}
