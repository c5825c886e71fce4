package server

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// watchInterval is the time between two checks of a dependency.
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

// note records whether a part is lost, and since when.
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
