package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/auth/timing"
	"commerce/subscriptions"
	"commerce/subscriptions/replicas"
)

// server is the primary or a replica.
type server struct {
	pool, summaryPool *pgxpool.Pool
	replica           *replicas.Replica   // nil: the primary
	wait              time.Duration       // maximum for a connection
	shares            *limit.Slots[int64] // connections by store
	polls             polls
}

const (
	// storeShare limits each store to a quarter of the pool's connections, so that its slow
	// requests do not delay other stores.
	storeShare = 4

	// maxWaiting is how many requests of one store wait for each of its connections. More would
	// hardly get one in time. Meanwhile they would take the places of other stores' requests,
	// which are limited for each instance.
	maxWaiting = 16

	// noStore is the store of statements that concern no store.
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

// connected calls read with a connection for a store.
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
	return failure(s.pool, began, read(ctx, conn))
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

// permissionDenied is the error while the role's rights are revoked. The statement
// itself may be correct.
const permissionDenied = "42501"

// isDefect reports whether the server refused a statement as wrong, or has a value that cannot be
// read.
func isDefect(err error) bool {
	if _, unreadable := errors.AsType[pgx.ScanArgError](err); unreadable {
		return true
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(refused.Code) != 5 || refused.Code == permissionDenied {
		return false
	}
	class := refused.Code[:2]
	return class == "22" || class == "23" || class == "42" // data, integrity, syntax
}
