package subscriptions

import (
	"cmp"
	"context"
	"errors"
	"time"

	"commerce/auth/problem"
	"commerce/subscriptions/replicas"
)

// servers are the primary and its replicas.
type servers struct {
	primary  *server
	replicas []*server // in the order of watch.All
	watch    *replicas.Set
	served   func(by string)
}

func newServers(c PostgresConfig) servers {
	s := servers{
		primary: newServer(c.Pool, cmp.Or(c.SummaryPool, c.Pool), nil),
		watch:   c.Replicas, served: c.Served,
	}
	for _, r := range c.Replicas.All() {
		s.replicas = append(s.replicas, newServer(r.Pool, r.SummaryPool, r))
	}
	return s
}

// read calls try with replicas that are fit, and then with the primary, until it succeeds. Only
// the primary decides that something does not exist, because a replica may not have it yet. Each
// call of try must start from the beginning.
func (s *servers) read(ctx context.Context, store int64, try func(context.Context, *server) error) error {
	counted := func(ctx context.Context, one *server) error {
		err := try(ctx, one)
		if err == nil || isMissing(err) {
			s.served(one.kind())
		}
		return err
	}
	fit := s.fit(store)
	if len(fit) == 0 {
		return counted(ctx, s.primary)
	}
	return s.each(ctx, append(fit, s.primary), counted)
}

// readLatest calls try with the primary, and if that fails, with replicas that are fit.
func (s *servers) readLatest(ctx context.Context, try func(context.Context, *server) error) error {
	return s.each(ctx, append([]*server{s.primary}, s.fit(noStore)...), try)
}

func (s *servers) fit(store int64) []*server {
	fit := s.watch.Fit(store)
	if len(fit) == 0 {
		return nil
	}
	found := make([]*server, len(fit), len(fit)+1)
	for i, r := range fit {
		found[i] = s.replicas[r.Index]
	}
	return found
}

// each calls try with each server until it succeeds. Every server but the last has half of the
// remaining time, so that time remains for the next one if it hangs.
func (s *servers) each(ctx context.Context, all []*server, try func(context.Context, *server) error) error {
	for _, one := range all[:len(all)-1] {
		err := withHalfOfTheTime(ctx, func(ctx context.Context) error { return try(ctx, one) })
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case one.replica != nil && isMissing(err):
			return try(ctx, s.primary)
		case one.replica != nil && isFailure(err):
			one.replica.Suspect()
		}
	}
	return try(ctx, all[len(all)-1])
}

// isMissing reports whether a server answers that it does not have what was asked for.
func isMissing(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrCursorExpired) || errors.Is(err, errBehind)
}

// isFailure reports whether a server could not answer. A statement that it refuses, and rows that
// cannot be shown, say nothing about the server: other reads of it succeed.
func isFailure(err error) bool {
	_, is := errors.AsType[*problem.Error](err)
	return is && !errors.Is(err, errShareUsed) && !errors.Is(err, errOtherDatabase)
}

func withHalfOfTheTime(ctx context.Context, try func(context.Context) error) error {
	ends, bounded := ctx.Deadline()
	if !bounded {
		return try(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Until(ends)/2)
	defer cancel()
	return try(ctx)
}
