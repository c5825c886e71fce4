package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/auth/limit"
	"commerce/auth/pgread"
	"commerce/auth/problem"
	"commerce/auth/timing"
	"commerce/subscriptions"
	"commerce/subscriptions/replicas"
)

// onServers calls try with replicas that are fit, and then with the primary, until it succeeds. Only
// the primary decides that something does not exist, because a replica may not have it yet. Each
// call of try must start from the beginning.
func (p *Source) onServers(ctx context.Context, store int64, try func(context.Context, *server) error) error {
	return each(ctx, append(p.fit(store), p.primary), func(ctx context.Context, one *server) error {
		err := try(ctx, one)
		if err == nil || isMissing(err) {
			by := "primary"
			if one.replica != nil {
				by = "replica"
			}
			p.served(by)
		}
		return err
	})
}

// fit returns the replicas to read a store from.
func (p *Source) fit(store int64) []*server {
	var found []*server
	for _, r := range p.watch.Fit(store) {
		found = append(found, p.replicas[r.Index])
	}
	return found
}

// each calls try with each server until it succeeds. Every server but the last has half of the
// remaining time, so that time remains for the next one if it hangs.
func each(ctx context.Context, all []*server, try func(context.Context, *server) error) error {
	last := all[len(all)-1]
	for _, one := range all[:len(all)-1] {
		half, cancel := context.WithTimeout(ctx, remaining(ctx)/2)
		err := try(half, one)
		cancel()
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

// errBehind means that a replica cannot tell what follows a cursor of changes or of a history.
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

// remaining returns the time until ctx ends, an hour if it has no end.
func remaining(ctx context.Context) time.Duration {
	ends, bounded := ctx.Deadline()
	if !bounded {
		return time.Hour
	}
	return time.Until(ends)
}

// server is the primary or a replica.
type server struct {
	pool, summaryPool *pgxpool.Pool
	replica           *replicas.Replica     // nil: the primary
	wait              time.Duration         // maximum for a connection
	shares            *limit.Slots[int64]   // connections by store
	lately            atomic.Pointer[dated] // the history that was read last
}

const (
	// storeShare limits each store to a quarter of the pool's connections, so that its slow
	// requests do not delay other stores.
	storeShare = 4

	// maxWaiting is how many requests of one store wait for each of its connections. More would
	// hardly get one in time. Meanwhile they would take the places of other stores' requests,
	// which are limited for each instance.
	maxWaiting = 16

	noStore = 0
)

func newServer(pool, summaryPool *pgxpool.Pool, replica *replicas.Replica, wait time.Duration) *server {
	each := max(2, int(pool.Config().MaxConns)/storeShare)
	return &server{
		pool: pool, summaryPool: summaryPool, replica: replica, wait: wait,
		shares: limit.NewSlots[int64](limit.SlotsConfig{Each: each, Waiting: maxWaiting * each}),
	}
}

// errShareUsed means that a store uses all connections that one store may use. The server may
// be fine.
var errShareUsed = errors.New("the store uses its share of the connections")

// acquire returns a connection for a store. Without an error the caller must call release.
func (s *server) acquire(ctx context.Context, store int64) (conn *pgxpool.Conn, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	leave := func() {}
	if store != noStore {
		if leave, err = s.shares.Enter(ctx, store); err != nil {
			what := fmt.Sprintf("no connection became free within %s: the store already uses its share of %d", s.wait, s.shares.Each)
			return nil, nil, &cause.Failure{Server: cause.Postgres(s.pool.Config().ConnConfig), What: what, Err: fmt.Errorf("%w: %w", errShareUsed, err)}
		}
	}
	if conn, err = s.pool.Acquire(ctx); err != nil {
		leave()
		return nil, nil, err
	}
	return conn, func() { conn.Release(); leave() }, nil
}

// connected calls read with a connection for a store. It may call read twice, as pgread.On does.
func (s *server) connected(ctx context.Context, store int64, read func(context.Context, *pgxpool.Conn) error) error {
	began := time.Now()
	conn, release, err := s.acquire(ctx, store)
	acquired := time.Now()
	timing.Add(ctx, timing.Waiting, acquired.Sub(began))
	if err != nil {
		return subscriptions.Unavailable(cause.OfPostgres(s.pool, began, err))
	}
	defer release()
	defer func() { timing.Add(ctx, timing.Postgres, time.Since(acquired)) }()
	err = pgread.On(ctx, conn, func() error { return read(ctx, conn) })
	return failure(s.pool, began, err)
}

// failure returns the error of a call that has begun at the given time, with the name of the
// pool's server. A database that is down or slow is unavailable. A statement that is wrong is a
// defect, which a retry does not fix.
func failure(pool *pgxpool.Pool, began time.Time, err error) error {
	if errors.Is(err, errBehind) {
		return err
	}
	if known, ok := errors.AsType[*problem.Error](err); ok {
		if known.Cause == nil {
			return known
		}
		return known.Because(cause.OfPostgres(pool, began, known.Cause))
	}
	described := cause.OfPostgres(pool, began, err)
	if err == nil || isDefect(err) {
		return described
	}
	return subscriptions.Unavailable(described)
}

// isDefect reports whether the server refused a statement as wrong, has a value that cannot be
// read, or lacks a row that each database has.
func isDefect(err error) bool {
	if _, unreadable := errors.AsType[pgx.ScanArgError](err); unreadable || errors.Is(err, pgx.ErrNoRows) {
		return true
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(refused.Code) != 5 || refused.Code == "42501" { // the role's rights are revoked, for now
		return false
	}
	class := refused.Code[:2]
	return class == "22" || class == "23" || class == "42" // data, integrity, syntax
}
