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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/cause"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/timing"
)

// PostgresConfig configures a Postgres source.
type PostgresConfig struct {
	// Pool may be read-only. Its statement timeout ends statements that this source no
	// longer waits for.
	Pool *pgxpool.Pool

	// SummaryPool is for Totals, which reads all rows of a store: its statements take
	// longer than the others. It may be read-only. nil: Pool.
	SummaryPool *pgxpool.Pool

	// Base ends all calls of Totals when it ends. They may outlive their requests, and
	// the pool can be closed only after they have ended. Default: context.Background().
	Base context.Context

	// Wait bounds the wait for a connection of the pool. Default: 300 ms.
	Wait time.Duration

	// Budget bounds a whole call, including the wait. Default: 1 s.
	Budget time.Duration

	// Log receives warnings about rows that are not shown as they are stored.
	// Default: slog.Default.
	Log *slog.Logger

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Postgres is a source that reads the tables of the migrations.
type Postgres struct {
	pool         *pgxpool.Pool
	wait, budget time.Duration
	keys         atomic.Pointer[linkKeys] // nil until they were read
	now          func() time.Time
	skippers     *slots // pages that skip many rows
	shares       *shares
	outOfBounds  outOfBounds
	polls        polls
	noChanges    atomic.Pointer[time.Time] // when the database had none; nil: it was not missed

	summaryPool *pgxpool.Pool
	base        context.Context
}

// storeShare limits each store to a quarter of the pool's connections.
const storeShare = 4

// linkKeys are keys and the time when they were read.
type linkKeys struct {
	keys [][]byte
	read time.Time
}

// linkKeysFor is how long keys are used before they are read again. If a key is replaced
// twice within this time, instances may refuse each other's links.
const linkKeysFor = 10 * time.Second

var _ Source = (*Postgres)(nil)

// NewPostgres returns a source for a PostgresConfig. It reads nothing yet.
func NewPostgres(c PostgresConfig) *Postgres {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Base == nil {
		c.Base = context.Background()
	}
	return &Postgres{
		pool:        c.Pool,
		wait:        cmp.Or(c.Wait, 300*time.Millisecond),
		budget:      cmp.Or(c.Budget, time.Second),
		shares:      newShares(max(2, int(c.Pool.Config().MaxConns)/storeShare)),
		skippers:    newSlots(maxSkippers, maxSkippersOfStore),
		now:         c.Now,
		outOfBounds: outOfBounds{log: cmp.Or(c.Log, slog.Default()), now: c.Now},
		summaryPool: cmp.Or(c.SummaryPool, c.Pool),
		base:        c.Base,
	}
}

// List implements Source. It refuses a query that skips many rows while too many of
// those are running.
func (p *Postgres) List(ctx context.Context, store int64, q Query) ([]Subscription, error) {
	if q.Skip > manySkips {
		if !p.skippers.enter(store) {
			return nil, errManySkips
		}
		defer p.skippers.leave(store)
	}
	sql, args := listSQL(store, q)
	all := make([]Subscription, 0, q.Limit)
	r := row{Subscription: Subscription{StoreID: store}}
	err := p.read(ctx, store, sql, args, r.into(), func() {
		all = append(all, r.Subscription)
		p.complete(&all[len(all)-1], &r)
	})
	if err != nil {
		return nil, err
	}
	sortNewestFirst(all)
	return all, nil
}

// sortNewestFirst sorts the rows of a list. Only the subquery of IDs is ordered, not the
// statement, but rows nearly always come in that order or, for Query.Newer, in reverse.
func sortNewestFirst(all []Subscription) {
	if len(all) > 1 && all[0].ID < all[1].ID {
		slices.Reverse(all)
	}
	if !slices.IsSortedFunc(all, newerFirst) {
		slices.SortFunc(all, newerFirst)
	}
}

// newerFirst is the order of lists: by descending ID.
func newerFirst(a, b Subscription) int { return cmp.Compare(b.ID, a.ID) }

// Get implements Source.
func (p *Postgres) Get(ctx context.Context, store, id int64, l locale.Locale) (*Subscription, error) {
	var found *Subscription
	r := row{Subscription: Subscription{StoreID: store}}
	var scheduled scheduledVariant
	err := p.read(ctx, store, getSQL, []any{store, string(l), id}, append(r.into(), scheduled.into()...), func() {
		found = &r.Subscription
		p.complete(found, &r)
		found.Scheduled = scheduled.variant()
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, ErrNotFound
	}
	return found, nil
}

// complete adds the card to a copy of a row's subscription, and replaces what cannot be shown.
func (p *Postgres) complete(s *Subscription, r *row) {
	if r.card.LastFour != "" {
		card := r.card
		s.Card = &card
	}
	if s.bound() {
		p.outOfBounds.warn(s)
	}
}

// LinkKeys implements Source.
func (p *Postgres) LinkKeys(ctx context.Context, fresh bool) ([][]byte, error) {
	if held := p.keys.Load(); held != nil && !fresh && p.now().Sub(held.read) < linkKeysFor {
		return held.keys, nil
	}
	began := p.now()
	var key, previous []byte
	err := p.read(ctx, noStore, "/* page_link_key */ SELECT key, previous FROM page_link_key", nil, []any{&key, &previous}, func() {})
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

// noStore is the store of statements that concern no store.
const noStore = 0

// read runs one statement for a store. It calls each after it has read a row into the given
// variables.
func (p *Postgres) read(ctx context.Context, store int64, sql string, args, into []any, each func()) error {
	return p.connected(ctx, store, func(ctx context.Context, conn *pgxpool.Conn) error {
		return readRows(ctx, conn, sql, args, into, each)
	})
}

// connected calls read with a connection for a store, within the budget.
func (p *Postgres) connected(ctx context.Context, store int64, read func(context.Context, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	began := time.Now()
	conn, release, err := p.acquire(ctx, store)
	acquired := time.Now()
	timing.Add(ctx, timing.Waiting, acquired.Sub(began))
	if err != nil {
		return unavailable(cause.OfPostgres(p.pool, began, err))
	}
	defer release()
	defer func() { timing.Add(ctx, timing.Postgres, time.Since(acquired)) }()
	return describe(p.pool, began, read(ctx, conn))
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readRows runs a statement. It calls each after it has read a row into the given variables.
func readRows(ctx context.Context, on querier, sql string, args, into []any, each func()) error {
	rows, err := on.Query(ctx, sql, args...)
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		each()
	}
	if err := rows.Err(); err != nil {
		return classify(err)
	}
	return nil
}

func (p *Postgres) acquire(ctx context.Context, store int64) (conn *pgxpool.Conn, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	leave, err := p.shares.enter(ctx, store)
	if err != nil {
		what := fmt.Sprintf("no connection became free within %s: the store already uses its share of %d", p.wait, p.shares.size)
		return nil, nil, &cause.Failure{Server: cause.Postgres(p.pool.Config().ConnConfig), What: what, Err: err}
	}
	if conn, err = p.pool.Acquire(ctx); err != nil {
		leave()
		return nil, nil, err
	}
	return conn, func() { conn.Release(); leave() }, nil
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
