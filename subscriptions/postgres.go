package subscriptions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgresConfig is what a Postgres source works with.
type PostgresConfig struct {
	// Pool needs to read only. Its statement time-out ends what this source no
	// longer waits for.
	Pool *pgxpool.Pool

	// Wait bounds the wait for a connection of the pool. Default: 300 ms.
	Wait time.Duration

	// Budget bounds a call as a whole, the wait included. Default: 1 s.
	Budget time.Duration

	// Log receives warnings about rows that are not shown as they are stored.
	// Default: slog.Default.
	Log *slog.Logger
}

// Postgres is a source of subscriptions in the tables of the migrations.
type Postgres struct {
	pool         *pgxpool.Pool
	wait, budget time.Duration
	keys         atomic.Pointer[linkKeys] // nil until they were read
	deep         deepPages
	shares       *shares
	adapted      adaptedRows
}

// storeShare is the part of the pool's connections that one store may use: a quarter.
const storeShare = 4

// linkKeys are keys as they were at a time.
type linkKeys struct {
	keys [][]byte
	read time.Time
}

// linkKeysFor is how long keys are used before they are read again. A key that was
// replaced twice within this time may split the instances.
const linkKeysFor = 10 * time.Second

var _ Source = (*Postgres)(nil)

// NewPostgres returns a source that works with c. It reads nothing yet.
func NewPostgres(c PostgresConfig) *Postgres {
	return &Postgres{
		pool:    c.Pool,
		wait:    cmp.Or(c.Wait, 300*time.Millisecond),
		budget:  cmp.Or(c.Budget, time.Second),
		shares:  newShares(max(2, int(c.Pool.Config().MaxConns)/storeShare)),
		adapted: adaptedRows{log: cmp.Or(c.Log, slog.Default())},
	}
}

// List implements Source. It refuses a query that skips many rows while enough of
// those are running.
func (p *Postgres) List(ctx context.Context, store int64, q Query) ([]Subscription, error) {
	if q.Skip > deepSkip {
		if !p.deep.enter(store) {
			return nil, tooManyDeep()
		}
		defer p.deep.leave(store)
	}
	sql, args := listSQL(store, q)
	all := make([]Subscription, 0, q.Limit)
	r := row{Subscription: Subscription{StoreID: store}}
	err := p.read(ctx, store, sql, args, r.into(), func() { all = append(all, p.subscription(&r)) })
	if err != nil {
		return nil, err
	}
	// The statement has no order of its own beyond that of the ids it begins with.
	slices.SortFunc(all, func(a, b Subscription) int { return cmp.Compare(b.ID, a.ID) })
	return all, nil
}

// Get implements Source.
func (p *Postgres) Get(ctx context.Context, store, id int64) (*Subscription, error) {
	var found *Subscription
	r := row{Subscription: Subscription{StoreID: store}}
	var scheduled scheduledVariant
	err := p.read(ctx, store, getSQL, []any{store, id}, append(r.into(), scheduled.into()...), func() {
		s := p.subscription(&r)
		s.Scheduled = scheduled.variant()
		found = &s
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, ErrNotFound
	}
	return found, nil
}

func (p *Postgres) subscription(r *row) Subscription {
	s, adapted := r.subscription()
	if adapted {
		p.adapted.warn(&s)
	}
	return s
}

// LinkKeys implements Source.
func (p *Postgres) LinkKeys(ctx context.Context, fresh bool) ([][]byte, error) {
	if held := p.keys.Load(); held != nil && !fresh && time.Since(held.read) < linkKeysFor {
		return held.keys, nil
	}
	began := time.Now()
	var key, previous []byte
	err := p.read(ctx, noStore, "SELECT key, previous FROM page_link_key", nil, []any{&key, &previous}, func() {})
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errors.New("page_link_key is empty")
	}
	keys := [][]byte{key}
	if previous != nil {
		keys = append(keys, previous)
	}
	p.keys.Store(&linkKeys{keys, began})
	return keys, nil
}

// noStore is what statements that concern no store are read for.
const noStore = 0

// read runs one statement for a store, on one connection and within the budget. It
// calls each whenever a row has been read into the given places.
func (p *Postgres) read(ctx context.Context, store int64, sql string, args, into []any, each func()) error {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	conn, release, err := p.acquire(ctx, store)
	if err != nil {
		return unavailable(fmt.Errorf("wait for a connection: %w", err))
	}
	defer release()
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return judge(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		each()
	}
	if err := rows.Err(); err != nil {
		return judge(err)
	}
	return nil
}

func (p *Postgres) acquire(ctx context.Context, store int64) (conn *pgxpool.Conn, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	leave, err := p.shares.enter(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	if conn, err = p.pool.Acquire(ctx); err != nil {
		leave()
		return nil, nil, err
	}
	return conn, func() { conn.Release(); leave() }, nil
}

// permissionDenied is what a statement fails with while the role's rights are revoked,
// which says nothing about the statement.
const permissionDenied = "42501"

// judge tells a database that is down or slow from a statement that is wrong, which
// waiting does not cure.
func judge(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 && refused.Code != permissionDenied {
		switch refused.Code[:2] {
		case "22", "23", "42": // data, integrity, syntax
			return err
		}
	}
	return unavailable(err)
}
