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
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/subscriptions/replicas"
)

// PostgresConfig configures a Postgres source.
type PostgresConfig struct {
	// Pool may be read-only. Its statement timeout ends statements that this source no
	// longer waits for.
	Pool *pgxpool.Pool

	// SummaryPool is for Totals, which reads all rows of a store: its statements take
	// longer than the others. It may be read-only. nil: Pool.
	SummaryPool *pgxpool.Pool

	// Replicas serve most reads while they are fit. The caller runs the Set. nil: none.
	Replicas *replicas.Set

	// Served, if not nil, is called after each read that a server answered, with the kind of
	// the server: "primary" or "replica".
	Served func(by string)

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
	servers      servers
	wait, budget time.Duration
	keys         atomic.Pointer[linkKeys] // nil until they were read
	now          func() time.Time
	skippers     *limit.Slots[int64] // pages that skip many rows, by store
	outOfBounds  outOfBounds
	noChanges    atomic.Pointer[time.Time] // when the database had none; nil: it was not missed
	base         context.Context
}

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
	if c.Served == nil {
		c.Served = func(string) {}
	}
	return &Postgres{
		servers:     newServers(c),
		wait:        cmp.Or(c.Wait, 300*time.Millisecond),
		budget:      cmp.Or(c.Budget, time.Second),
		skippers:    limit.NewSlots[int64](limit.SlotsConfig{All: maxSkippers, Each: maxSkippersOfStore}),
		now:         c.Now,
		outOfBounds: outOfBounds{log: cmp.Or(c.Log, slog.Default()), now: c.Now},
		base:        c.Base,
	}
}

// manySkips is the number of skipped rows from which the reads of a page are limited. Skipping
// 20,000 rows takes Postgres 1.1 ms, or 8 ms if updates have hidden the rows from their index;
// 1,000,000 rows take 50 times as long.
const manySkips = 20_000

// maxSkippers is how many such pages one instance reads at the same time. They are few, so that
// most connections remain for other requests.
const maxSkippers, maxSkippersOfStore = 2, 1

// List implements Source. It refuses a query that skips many rows while too many of
// those are running.
func (p *Postgres) List(ctx context.Context, store int64, q Query) ([]Subscription, error) {
	if q.Skip > manySkips {
		leave, err := p.skippers.Enter(ctx, store)
		if err != nil {
			return nil, errManySkips
		}
		defer leave()
	}
	sql, args := listSQL(store, q)
	var all []Subscription
	err := p.read(ctx, store, func(ctx context.Context, _ *server, conn *pgxpool.Conn) error {
		all = make([]Subscription, 0, q.Limit)
		r := row{Subscription: Subscription{StoreID: store}}
		return readRows(ctx, conn, sql, args, r.into(), func() {
			all = append(all, r.Subscription)
			p.complete(&all[len(all)-1], &r)
		})
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
	err := p.read(ctx, store, func(ctx context.Context, _ *server, conn *pgxpool.Conn) error {
		found = nil
		r := row{Subscription: Subscription{StoreID: store}}
		var scheduled scheduledVariant
		err := readRows(ctx, conn, getSQL, []any{store, string(l), id}, append(r.into(), scheduled.into()...), func() {
			found = &r.Subscription
			p.complete(found, &r)
			found.Scheduled = scheduled.variant()
		})
		if err == nil && found == nil {
			return ErrNotFound
		}
		return err
	})
	if err != nil {
		return nil, err
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
	key, previous, err := p.readLinkKeys(ctx)
	if err != nil {
		return nil, err
	}
	keys := [][]byte{key}
	if previous != nil {
		keys = append(keys, previous)
	}
	p.keys.Store(&linkKeys{keys, began})
	return keys, nil
}

// readLinkKeys prefers the primary: a replica may not have the latest keys yet.
func (p *Postgres) readLinkKeys(ctx context.Context) (key, previous []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	err = p.servers.readLatest(ctx, func(ctx context.Context, s *server) error {
		key, previous = nil, nil
		return s.connected(ctx, noStore, p.wait, func(ctx context.Context, conn *pgxpool.Conn) error {
			return readRows(ctx, conn, "/* page_link_key */ SELECT key, previous FROM page_link_key", nil, []any{&key, &previous}, func() {})
		})
	})
	if err == nil && key == nil {
		err = errors.New("page_link_key is empty")
	}
	return key, previous, err
}

// noStore is the store of statements that concern no store.
const noStore = 0

// read calls try with a connection for a store, within the budget. It calls try again, with
// another connection, if a replica fails.
func (p *Postgres) read(ctx context.Context, store int64, try func(context.Context, *server, *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.budget)
	defer cancel()
	return p.servers.read(ctx, store, func(ctx context.Context, s *server) error {
		return s.connected(ctx, store, p.wait, func(ctx context.Context, conn *pgxpool.Conn) error { return try(ctx, s, conn) })
	})
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
