package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/auth/limit"
	"commerce/auth/problem"
	"commerce/auth/timing"
	"commerce/subscriptions/replicas"
)

// server is the primary or a replica.
type server struct {
	pool, summaryPool *pgxpool.Pool
	replica           *replicas.Replica   // nil: the primary
	shares            *limit.Slots[int64] // connections by store
	polls             polls
}

func newServer(pool, summaryPool *pgxpool.Pool, replica *replicas.Replica) *server {
	return &server{
		pool: pool, summaryPool: summaryPool, replica: replica,
		shares: limit.NewSlots[int64](sharesOf(pool.Config().MaxConns)),
	}
}

func (s *server) kind() string {
	if s.replica == nil {
		return "primary"
	}
	return "replica"
}

const (
	// storeShare limits each store to a quarter of the pool's connections, so that its slow
	// requests do not delay other stores.
	storeShare = 4

	// maxWaiting is how many requests of one store wait for each of its connections. More would
	// hardly get one in time. Meanwhile they would take the places of other stores' requests,
	// which are limited for each instance.
	maxWaiting = 16
)

func sharesOf(connections int32) limit.SlotsConfig {
	each := max(2, int(connections)/storeShare)
	return limit.SlotsConfig{Each: each, Waiting: maxWaiting * each}
}

// errShareUsed means that a store uses all connections that one store may use. The server may
// be fine.
var errShareUsed = errors.New("the store uses its share of the connections")

// acquire returns a connection for a store, and waits for it at most for the given time.
func (s *server) acquire(ctx context.Context, store int64, wait time.Duration) (conn *pgxpool.Conn, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	leave := func() {}
	if store != noStore {
		if leave, err = s.shares.Enter(ctx, store); err != nil {
			what := fmt.Sprintf("no connection became free within %s: the store already uses its share of %d", wait, s.shares.Each)
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
func (s *server) connected(ctx context.Context, store int64, wait time.Duration, read func(context.Context, *pgxpool.Conn) error) error {
	began := time.Now()
	conn, release, err := s.acquire(ctx, store, wait)
	acquired := time.Now()
	timing.Add(ctx, timing.Waiting, acquired.Sub(began))
	if err != nil {
		return unavailable(cause.OfPostgres(s.pool, began, err))
	}
	defer release()
	defer func() { timing.Add(ctx, timing.Postgres, time.Since(acquired)) }()
	return describe(s.pool, began, read(ctx, conn))
}

// permissionDenied is the error while the role's rights are revoked. The statement
// itself may be correct.
const permissionDenied = "42501"

// classify separates a database that is down or slow, which is unavailable, from a
// statement that is wrong, which a retry does not fix.
func classify(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 && refused.Code != permissionDenied {
		switch refused.Code[:2] {
		case "22", "23", "42": // data, integrity, syntax
			return err
		}
	}
	return unavailable(err)
}

// describe names the server of the pool in an error of a call that has begun at the given
// time: in the cause of an error of classify, and in a statement that is wrong.
func describe(pool *pgxpool.Pool, began time.Time, err error) error {
	if known, ok := errors.AsType[*problem.Error](err); ok {
		return known.Because(cause.OfPostgres(pool, began, known.Cause))
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return cause.OfPostgres(pool, began, err)
	}
	return err
}
