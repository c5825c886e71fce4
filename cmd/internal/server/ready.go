package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pingTime is how long a dependency has to answer for /readyz.
	pingTime = 500 * time.Millisecond

	// unreachedTime is how long a process that never reached a dependency stays not ready. Then it
	// accepts requests, since the dependency may be down for all instances.
	unreachedTime = 30 * time.Second
)

// Dependency is a server that all instances share. Once it has accepted this instance,
// its outages do not make the instance not ready: all instances would become not ready
// at the same time, and calls that work without the dependency would fail too.
type Dependency struct {
	// Ping returns nil if the dependency answers and accepts us.
	Ping func(context.Context) error
	// Parts are what Ping checks after the dependency has answered, in this order. An error of
	// Ping that belongs to none of them means that it does not answer.
	Parts []Part
	// Refused reports whether an error of Ping means that the dependency does not accept us, such
	// as a wrong password. Such a process must not replace one that works.
	Refused func(error) bool
	// PingAll returns nil if all servers of the dependency answer. nil: Ping. Only Watch
	// calls it, since a process is ready without some shards of a cluster.
	PingAll func(context.Context) error
	// WatchTime is how long Watch waits for an answer. It should not be shorter than a
	// request waits, so that a server that serves requests is not lost. Default: 500 ms.
	WatchTime time.Duration

	lost map[string]time.Time // the parts that fail, the dependency itself included, and since when

	accepted atomic.Bool // at least once
	refused  atomic.Bool // at least once
}

// Part is something that is wrong with a dependency that answers, such as missing rights.
type Part struct {
	Name string
	Is   func(error) bool // whether an error of Ping belongs to it
}

// result is what a check says about a part of a dependency, or about the dependency itself.
type result struct {
	name  string
	known bool
	err   error
}

// results splits the result of a check. Nothing is known about the parts after one that failed.
func (d *Dependency) results(name string, err error) []result {
	failed := 0
	if err != nil {
		failed = 1 + slices.IndexFunc(d.Parts, func(p Part) bool { return p.Is(err) })
	}
	all := []result{{name: name, known: true}}
	for i, p := range d.Parts {
		all = append(all, result{name: p.Name, known: err == nil || i < failed})
	}
	all[failed].err = err
	return all
}

type state struct {
	*Dependency
	found   []result
	failing string // the state of what fails
	unready bool
}

func (d *Dependency) check(ctx context.Context, name string, age time.Duration) state {
	err := d.Ping(ctx)
	s := state{Dependency: d, found: d.results(name, err), failing: "failing"}
	switch {
	case err == nil:
		d.accepted.Store(true)
	case d.accepted.Load():
	case d.refused.Load() || d.Refused(err):
		d.refused.Store(true)
		s.failing, s.unready = "refused", true
	default:
		s.failing, s.unready = "unreached", age < unreachedTime
	}
	return s
}

// Reach checks all dependencies and returns the errors of those that do not answer or do
// not accept us, by the name of the dependency or the part. Call it once before the first
// request, so that a dependency that fails later is known to have worked.
func (a *Admin) Reach(ctx context.Context) map[string]error {
	failed := map[string]error{}
	began := time.Now()
	for _, s := range a.check(ctx) {
		for _, r := range s.found {
			a.note(s.Dependency, began, r)
			if r.err != nil {
				failed[r.name] = r.err
			}
		}
	}
	return failed
}

// check checks all dependencies at once, so that a slow one takes no time of others.
func (a *Admin) check(ctx context.Context) []state {
	age := time.Since(a.Started)
	seen := make(chan state, len(a.Dependencies))
	for name, d := range a.Dependencies {
		go func() { seen <- d.check(ctx, name, age) }()
	}
	all := make([]state, 0, len(a.Dependencies))
	for range a.Dependencies {
		all = append(all, <-seen)
	}
	return all
}

// ready responds with 200 until Drain, unless the state of a dependency makes the
// process not ready. It always lists the state of each dependency, part and replica.
func (a *Admin) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pingTime)
	defer cancel()
	status, text := http.StatusOK, "ready"
	checks := map[string]string{}
	for _, s := range a.check(ctx) {
		for _, r := range s.found {
			switch {
			case r.err != nil:
				checks[r.name] = s.failing
			case r.known:
				checks[r.name] = "ok"
			default:
				checks[r.name] = "unknown"
			}
		}
		if s.unready {
			status, text = http.StatusServiceUnavailable, "not ready"
		}
	}
	if a.Replicas != nil {
		for name, state := range a.Replicas() {
			checks["replica "+name] = state
		}
	}
	if a.LosesLog != nil && a.LosesLog() {
		checks["log"] = "losing lines"
	}
	if a.draining.Load() {
		status, text = http.StatusServiceUnavailable, "draining"
	}
	writeJSON(w, status, map[string]any{"status": text, "checks": checks})
}

const watchInterval = time.Second

// Watch checks all dependencies about once a second until ctx ends. It logs a warning when it
// loses one, and the duration of the outage when the dependency is back. Call Reach first:
// Watch does not report a dependency as lost again if Reach has found it lost.
func (a *Admin) Watch(ctx context.Context) {
	var all sync.WaitGroup
	for name, d := range a.Dependencies {
		all.Go(func() { a.watch(ctx, name, d) })
	}
	all.Wait()
}

// watch checks one dependency, so that a slow one does not delay the checks of others.
func (a *Admin) watch(ctx context.Context, name string, d *Dependency) {
	ping := d.PingAll
	if ping == nil {
		ping = d.Ping
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		probe, cancel := context.WithTimeout(ctx, cmp.Or(d.WatchTime, pingTime))
		err := ping(probe)
		cancel()
		if ctx.Err() == nil {
			a.report(ctx, name, d, began, err)
		}
	}
}

// report logs the results of a check that differ from those of the previous one.
func (a *Admin) report(ctx context.Context, name string, d *Dependency, began time.Time, err error) {
	for _, r := range d.results(name, err) {
		since, lost := d.lost[r.name]
		a.note(d, began, r)
		switch {
		case r.err != nil && !lost:
			a.Log.WarnContext(ctx, "lost "+r.name, "dependency", r.name, "err", r.err)
		case r.known && r.err == nil && lost:
			a.Log.InfoContext(ctx, r.name+" is back", "dependency", r.name, "after", time.Since(since).Round(time.Millisecond).String())
		}
	}
}

func (a *Admin) note(d *Dependency, began time.Time, r result) {
	if !r.known {
		return
	}
	if d.lost == nil {
		d.lost = map[string]time.Time{}
	}
	if _, lost := d.lost[r.name]; r.err == nil {
		delete(d.lost, r.name)
	} else if !lost {
		d.lost[r.name] = began
	}
	a.Metrics.DependencyUp(r.name, r.err == nil)
}
