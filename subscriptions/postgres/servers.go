package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
)

type Config struct {
	// Pool is the primary's. It may be read-only. Its statement timeout ends statements that nobody waits for.
	Pool *pgxpool.Pool

	// Replicas serve most reads while they are fit.
	Replicas []Replica

	// Fit returns the indexes of the replicas to read a store from, the preferred one first. nil: none.
	Fit func(store int64) []int

	// Served, if not nil, is called after each read that a server answered, with the kind of
	// the server: "primary" or "replica".
	Served func(by string)

	// Wait bounds the wait for a connection of the pool. Default: 300 ms.
	Wait time.Duration

	// Budget bounds a whole call, including the wait. Default: 1 s.
	Budget time.Duration
}

type Replica struct {
	Pool   *pgxpool.Pool
	Failed func() // called after a read failed
}

// Servers are a primary and its replicas.
type Servers struct {
	Config
	Primary  *Server
	replicas []*Server // in the order of Config.Replicas
}

func NewServers(c Config) *Servers {
	if c.Fit == nil {
		c.Fit = func(int64) []int { return nil }
	}
	if c.Served == nil {
		c.Served = func(string) {}
	}
	c.Wait, c.Budget = cmp.Or(c.Wait, 300*time.Millisecond), cmp.Or(c.Budget, time.Second)
	s := &Servers{Config: c, Primary: newServer(c.Pool, c.Wait)}
	for _, r := range c.Replicas {
		replica := newServer(r.Pool, c.Wait)
		replica.IsReplica, replica.failed = true, r.Failed
		s.replicas = append(s.replicas, replica)
	}
	return s
}

// Read calls try with a connection for a store, within the budget. It calls try again, with
// another connection, if a replica fails.
func (s *Servers) Read(ctx context.Context, store int64, try func(context.Context, *Server, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Budget)
	defer cancel()
	return s.On(ctx, store, func(ctx context.Context, one *Server) error {
		return one.Connected(ctx, store, func(ctx context.Context, conn *pgxpool.Conn) error { return try(ctx, one, conn) })
	})
}

// On calls try with replicas that are fit, and then with the primary, until it succeeds. Only
// the primary decides that something does not exist, because a replica may not have it yet. Each
// call of try must start from the beginning.
func (s *Servers) On(ctx context.Context, store int64, try func(context.Context, *Server) error) error {
	return Each(ctx, s.Of(store), func(ctx context.Context, one *Server) error {
		err := try(ctx, one)
		if err == nil || isMissing(err) {
			by := "primary"
			if one.IsReplica {
				by = "replica"
			}
			s.Served(by)
		}
		return err
	})
}

// Of returns the servers to read a store from, the preferred one first, and the primary last.
func (s *Servers) Of(store int64) []*Server { return append(s.fit(store), s.Primary) }

func (s *Servers) fit(store int64) []*Server {
	var found []*Server
	for _, at := range s.Fit(store) {
		found = append(found, s.replicas[at])
	}
	return found
}

// Each calls try with each server until it succeeds. Every server but the last has half of the
// remaining time, so that time remains for the next one if it hangs.
func Each(ctx context.Context, all []*Server, try func(context.Context, *Server) error) error {
	last := all[len(all)-1]
	for _, one := range all[:len(all)-1] {
		half, cancel := context.WithTimeout(ctx, Remaining(ctx)/2)
		err := try(half, one)
		cancel()
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case one.IsReplica && isMissing(err):
			return try(ctx, last) // the primary
		case one.IsReplica && isFailure(err):
			one.failed()
		}
	}
	return try(ctx, last)
}

// ErrBehind means that a replica cannot tell what follows a cursor.
var ErrBehind = errors.New("the replica is behind the cursor")

// isMissing reports whether a server answers that it does not have what was asked for. Such an error
// has no cause.
func isMissing(err error) bool {
	known, is := errors.AsType[*problem.Error](err)
	return is && known.Cause == nil || errors.Is(err, ErrBehind)
}

// Blameless is an error that says nothing about the server: other reads of it succeed.
type Blameless string

func (b Blameless) Error() string { return string(b) }

// isFailure reports whether a server could not answer. A statement that it refuses, and rows that
// cannot be shown, are no failures.
func isFailure(err error) bool {
	_, blameless := errors.AsType[Blameless](err)
	_, is := errors.AsType[*problem.Error](err)
	return is && !blameless
}

// Remaining returns the time until ctx ends, an hour if it has no end.
func Remaining(ctx context.Context) time.Duration {
	ends, bounded := ctx.Deadline()
	if !bounded {
		return time.Hour
	}
	return time.Until(ends)
}

// Server is the primary or a replica.
type Server struct {
	Pool      *pgxpool.Pool
	IsReplica bool
	failed    func()              // nil for the primary
	wait      time.Duration       // maximum for a connection
	shares    *limit.Slots[int64] // connections by store
}

const (
	// storeShare limits each store to a quarter of the pool's connections, so that its slow
	// requests do not delay other stores.
	storeShare = 4

	// maxWaiting is how many requests of one store wait for each of its connections. More would
	// hardly get one in time. Meanwhile they would take the places of other stores' requests,
	// which are limited for each instance.
	maxWaiting = 16

	// NoStore is for reads that are of no store in particular. They use no store's share.
	NoStore = 0
)

func newServer(pool *pgxpool.Pool, wait time.Duration) *Server {
	each := max(2, int(pool.Config().MaxConns)/storeShare)
	return &Server{
		Pool: pool, wait: wait,
		shares: limit.NewSlots[int64](limit.SlotsConfig{Each: each, Waiting: maxWaiting * each}),
	}
}

// errShareUsed means that a store uses all connections that one store may use. The server may
// be fine.
const errShareUsed = Blameless("the store uses its share of the connections")

// acquire returns a connection for a store. Without an error the caller must call release.
func (s *Server) acquire(ctx context.Context, store int64) (conn *pgxpool.Conn, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	leave := func() {}
	if store != NoStore {
		if leave, err = s.shares.Enter(ctx, store); err != nil {
			what := fmt.Sprintf("no connection became free within %s: the store already uses its share of %d", s.wait, s.shares.Each)
			return nil, nil, &cause.Failure{Server: cause.Postgres(s.Pool.Config().ConnConfig), What: what, Err: fmt.Errorf("%w: %w", errShareUsed, err)}
		}
	}
	if conn, err = s.Pool.Acquire(ctx); err != nil {
		leave()
		return nil, nil, err
	}
	return conn, func() { conn.Release(); leave() }, nil
}

// Connected calls read with a connection for a store. It may call read twice, as pgread.On does.
func (s *Server) Connected(ctx context.Context, store int64, read func(context.Context, *pgxpool.Conn) error) error {
	began := time.Now()
	conn, release, err := s.acquire(ctx, store)
	acquired := time.Now()
	timing.Add(ctx, timing.Waiting, acquired.Sub(began))
	if err != nil {
		return subscriptions.Unavailable(cause.OfPostgres(s.Pool, began, err))
	}
	defer release()
	defer func() { timing.Add(ctx, timing.Postgres, time.Since(acquired)) }()
	err = pgread.On(ctx, conn, func() error { return read(ctx, conn) })
	return Failure(s.Pool, began, err)
}

// Failure returns the error of a call that has begun at the given time, with the name of the
// pool's server. A database that is down or slow is unavailable. A statement that is wrong is a
// defect, which a retry does not fix.
func Failure(pool *pgxpool.Pool, began time.Time, err error) error {
	if errors.Is(err, ErrBehind) {
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
