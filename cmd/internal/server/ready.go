package server

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// pingTime is how long a dependency has to answer for /readyz.
	pingTime = 500 * time.Millisecond

	// unreachedTime is how long a process that never reached a dependency stays
	// unready. Then it takes requests, since the dependency may be down for all.
	unreachedTime = 30 * time.Second
)

// Dependency is something behind the service that its instances share. Once it has
// accepted this instance, its outages do not make the instance unready: all instances
// would become unready at the same time, and what works without it would stop too.
type Dependency struct {
	// Ping returns nil if the dependency answers and accepts us.
	Ping func(context.Context) error
	// Refused reports whether an error of Ping means that the dependency does not
	// accept us, such as a wrong password. Such a process is not to replace one that
	// works.
	Refused func(error) bool

	accepted atomic.Bool // at least once
	refused  atomic.Bool // at least once
}

// state is what one look at a dependency came to.
type state struct {
	name, word string
	unready    bool
	err        error
}

func (d *Dependency) look(ctx context.Context, name string, age time.Duration) state {
	err := d.Ping(ctx)
	switch {
	case err == nil:
		d.accepted.Store(true)
		return state{name: name, word: "ok"}
	case d.accepted.Load():
		return state{name: name, word: "failing", err: err}
	case d.Refused(err):
		d.refused.Store(true)
	}
	if d.refused.Load() {
		return state{name: name, word: "refused", unready: true, err: err}
	}
	return state{name: name, word: "unreached", unready: age < unreachedTime, err: err}
}

// Reach looks for every dependency and returns the errors of those that do not answer
// or do not accept us. Call it once before requests may come, so that a dependency
// that fails later is known to have worked.
func (a *Admin) Reach(ctx context.Context) map[string]error {
	failed := map[string]error{}
	for _, s := range a.look(ctx) {
		if s.err != nil {
			failed[s.name] = s.err
		}
	}
	return failed
}

// look looks at all dependencies at the same time, so that a slow one does not take
// the time of the others.
func (a *Admin) look(ctx context.Context) []state {
	age := time.Since(a.Started)
	seen := make(chan state, len(a.Dependencies))
	for name, d := range a.Dependencies {
		go func() { seen <- d.look(ctx, name, age) }()
	}
	all := make([]state, 0, len(a.Dependencies))
	for range a.Dependencies {
		all = append(all, <-seen)
	}
	return all
}

// ready answers 200 until Drain, unless a dependency keeps the process from being
// ready. Either way it lists the state of each.
func (a *Admin) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pingTime)
	defer cancel()
	status, word := http.StatusOK, "ready"
	checks := map[string]string{}
	for _, s := range a.look(ctx) {
		checks[s.name] = s.word
		if s.unready {
			status, word = http.StatusServiceUnavailable, "not ready"
		}
	}
	if a.draining.Load() {
		status, word = http.StatusServiceUnavailable, "draining"
	}
	writeJSON(w, status, map[string]any{"status": word, "checks": checks})
}
