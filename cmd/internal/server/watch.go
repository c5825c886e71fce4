package server

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// watchInterval is the default time between two checks of a dependency.
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
	tick := time.NewTicker(cmp.Or(a.WatchInterval, watchInterval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := a.now()
		probe, cancel := context.WithTimeout(ctx, cmp.Or(d.WatchTime, pingTime))
		err := d.pingAll(probe)
		cancel()
		if ctx.Err() == nil {
			a.report(ctx, name, d, began, err)
		}
	}
}

func (d *Dependency) pingAll(ctx context.Context) error {
	if d.PingAll != nil {
		return d.PingAll(ctx)
	}
	return d.Ping(ctx)
}

// report logs the result of a check if it differs from that of the previous one.
func (a *Admin) report(ctx context.Context, name string, d *Dependency, began time.Time, err error) {
	since := d.lost
	a.note(name, d, began, err)
	switch {
	case err != nil && since.IsZero():
		a.Log.WarnContext(ctx, "lost "+name, "dependency", name, "err", err)
	case err == nil && !since.IsZero():
		a.Log.InfoContext(ctx, name+" is back", "dependency", name, "after", a.now().Sub(since).Round(time.Millisecond).String())
	}
}

// note records whether a dependency is lost, and since when.
func (a *Admin) note(name string, d *Dependency, began time.Time, err error) {
	switch {
	case err == nil:
		d.lost = time.Time{}
	case d.lost.IsZero():
		d.lost = began
	}
	a.Metrics.DependencyUp(name, err == nil)
}
