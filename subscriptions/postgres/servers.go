package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"commerce/auth/problem"
	"commerce/subscriptions"
	"commerce/subscriptions/replicas"
)

// servers are the primary and its replicas.
type servers struct {
	primary  *server
	replicas []*server // in the order of watch.All
	watch    *replicas.Set
	served   func(by string)
}

func newServers(c Config) servers {
	wait := cmp.Or(c.Wait, 300*time.Millisecond)
	s := servers{
		primary: newServer(c.Pool, cmp.Or(c.SummaryPool, c.Pool), nil, wait),
		watch:   c.Replicas, served: c.Served,
	}
	for _, r := range c.Replicas.All() {
		s.replicas = append(s.replicas, newServer(r.Pool, r.SummaryPool, r, wait))
	}
	return s
}

// read calls try with replicas that are fit, and then with the primary, until it succeeds. Only
// the primary decides that something does not exist, because a replica may not have it yet. Each
// call of try must start from the beginning.
func (s *servers) read(ctx context.Context, store int64, try func(context.Context, *server) error) error {
	return each(ctx, append(s.fit(store), s.primary), func(ctx context.Context, one *server) error {
		err := try(ctx, one)
		if err == nil || isMissing(err) {
			by := "primary"
			if one.replica != nil {
				by = "replica"
			}
			s.served(by)
		}
		return err
	})
}

// readLatest calls try with the primary, and if that fails, with replicas that are fit.
func (s *servers) readLatest(ctx context.Context, try func(context.Context, *server) error) error {
	return each(ctx, append([]*server{s.primary}, s.fit(noStore)...), try)
}

func (s *servers) fit(store int64) []*server {
	var found []*server
	for _, r := range s.watch.Fit(store) {
		found = append(found, s.replicas[r.Index])
	}
	return found
}

// each calls try with each server until it succeeds. Every server but the last has half of the
// remaining time, so that time remains for the next one if it hangs.
func each(ctx context.Context, all []*server, try func(context.Context, *server) error) error {
	last := all[len(all)-1]
	for _, one := range all[:len(all)-1] {
		err := withHalfOfTheTime(ctx, func(ctx context.Context) error { return try(ctx, one) })
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case one.replica != nil && isMissing(err):
			return try(ctx, last) // the primary
		case one.replica != nil && isFailure(err):
			one.replica.Suspect()
		}
	}
	return try(ctx, last)
}

// errBehind means that a replica cannot tell whether more changes follow a cursor.
var errBehind = errors.New("the replica is behind the cursor")

// isMissing reports whether a server answers that it does not have what was asked for.
func isMissing(err error) bool {
	return errors.Is(err, subscriptions.ErrNotFound) || errors.Is(err, subscriptions.ErrCursorExpired) || errors.Is(err, errBehind)
}

// isFailure reports whether a server could not answer. A statement that it refuses, and rows that
// cannot be shown, say nothing about the server: other reads of it succeed.
func isFailure(err error) bool {
	_, is := errors.AsType[*problem.Error](err)
	return is && !errors.Is(err, errShareUsed) && !errors.Is(err, subscriptions.ErrOtherDatabase)
}

func withHalfOfTheTime(ctx context.Context, try func(context.Context) error) error {
	if ends, bounded := ctx.Deadline(); bounded {
		half, cancel := context.WithTimeout(ctx, time.Until(ends)/2)
		defer cancel()
		ctx = half
	}
	return try(ctx)
}
