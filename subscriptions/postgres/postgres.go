// Package postgres reads subscriptions from Postgres: from a primary, and from those of its
// replicas that are fit.
package postgres

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/auth/limit"
	"commerce/auth/locale"
	"commerce/subscriptions"
)

// Source reads the tables of the migrations.
type Source struct {
	*Servers
	log      *slog.Logger
	warned   atomic.Int64             // when warn logged a row the last time, in Unix seconds
	keys     atomic.Pointer[linkKeys] // nil until they were read
	skippers *limit.Slots[int64]      // pages that skip many rows, by store
}

// New returns a source that reads from servers. It reads nothing yet. The log receives warnings about rows that
// are not shown as they are stored. nil: slog.Default.
func New(servers *Servers, log *slog.Logger) *Source {
	return &Source{
		Servers: servers, log: cmp.Or(log, slog.Default()),
		skippers: limit.NewSlots[int64](limit.SlotsConfig{All: maxSkippers, Each: maxSkippersOfStore}),
	}
}

// manySkips is the number of skipped rows from which the reads of a page are limited. Skipping
// 20,000 rows takes Postgres 1.1 ms, or 8 ms if updates have hidden the rows from their index;
// 1,000,000 rows take 50 times as long.
const manySkips = 20_000

// maxSkippers is how many such pages one instance reads at the same time. They are few, so that
// most connections remain for other requests.
const maxSkippers, maxSkippersOfStore = 2, 1

// List implements subscriptions.Source. It refuses a query that skips many rows while too many of
// those are running.
func (p *Source) List(ctx context.Context, store int64, q subscriptions.Query) (all []subscriptions.Subscription, err error) {
	if q.Skip > manySkips {
		leave, err := p.skippers.Enter(ctx, store)
		if err != nil {
			return nil, subscriptions.ErrManySkips
		}
		defer leave()
	}
	sql, args := listSQL(store, q)
	read := func(ctx context.Context, on queryer) (err error) {
		all, err = p.rows(ctx, on, newRow(store), q.Limit, sql, args...)
		return err
	}
	err = p.Read(ctx, store, func(ctx context.Context, _ *Server, conn *pgxpool.Conn) error {
		if !readsSeveral(q.Filter) {
			return read(ctx, conn)
		}
		return pgx.BeginTxFunc(ctx, conn, planned, func(tx pgx.Tx) error { return read(ctx, tx) })
	})
	// Only the subquery is ordered, not the statement.
	slices.SortFunc(all, func(a, b subscriptions.Subscription) int { return q.Compare(&a, &b) })
	return all, err
}

func (p *Source) Get(ctx context.Context, store, id int64, l locale.Locale) (found *subscriptions.Subscription, err error) {
	err = p.Read(ctx, store, func(ctx context.Context, _ *Server, conn *pgxpool.Conn) error {
		all, err := p.rows(ctx, conn, newRow(store).full(), 1, getSQL, store, string(l), id)
		switch {
		case err != nil:
			return err
		case len(all) == 0:
			return subscriptions.ErrNotFound
		}
		found = &all[0]
		return nil
	})
	return found, err
}

// InOrder returns the given subscriptions, complete, in the order of their IDs in ids. It leaves out those
// that do not exist.
func (p *Source) InOrder(ctx context.Context, conn *pgxpool.Conn, store int64, ids []int64, l locale.Locale) ([]subscriptions.Subscription, error) {
	return p.rows(ctx, conn, newRow(store).full(), len(ids), inOrderSQL, store, string(l), ids)
}

// planned is a transaction whose statements are planned for their arguments. A statement that can read several indexes names the
// table so often that a plan for all of its partitions would take up the time of the request.
var planned = pgx.TxOptions{BeginQuery: "BEGIN READ ONLY; SET LOCAL plan_cache_mode = force_custom_plan"}

// queryer is a connection or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// rows runs a statement whose columns r reads. Usually it returns as many rows as there is room for.
func (p *Source) rows(ctx context.Context, on queryer, r *row, room int, sql string, args ...any) ([]subscriptions.Subscription, error) {
	all := make([]subscriptions.Subscription, 0, room)
	rows, _ := on.Query(ctx, sql, args...) // the rows have the error
	_, err := pgx.ForEachRow(rows, r.columns, func() error {
		all = append(all, r.subscription())
		if s := &all[len(all)-1]; bound(s) {
			p.warn(s)
		}
		return nil
	})
	return all, err
}

// warn logs a row that breaks the bounds of the schema and is not shown as it is stored. It logs
// at most once a minute, since callers decide how often such a row is read.
func (p *Source) warn(s *subscriptions.Subscription) {
	last, now := p.warned.Load(), time.Now().Unix()
	if now-last >= 60 && p.warned.CompareAndSwap(last, now) {
		p.log.Warn("a subscription is not shown as it is stored, because it breaks the bounds of the schema",
			"store", s.StoreID, "subscription", s.ID)
	}
}

// linkKeys are keys and the time when they were read.
type linkKeys struct {
	keys [][]byte
	read time.Time
}

// linkKeysFor is how long keys are used before they are read again. If a key is replaced
// twice within this time, instances may refuse each other's links.
const linkKeysFor = 10 * time.Second

// LinkKeys implements subscriptions.Source. It prefers the primary: a replica may not have the
// latest keys yet.
func (p *Source) LinkKeys(ctx context.Context, fresh bool) ([][]byte, error) {
	if held := p.keys.Load(); held != nil && !fresh && time.Since(held.read) < linkKeysFor {
		return held.keys, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.Budget)
	defer cancel()
	began := time.Now()
	var keys [][]byte
	err := Each(ctx, append([]*Server{p.Primary}, p.fit(NoStore)...), func(ctx context.Context, s *Server) error {
		return s.Connected(ctx, NoStore, func(ctx context.Context, conn *pgxpool.Conn) error {
			return conn.QueryRow(ctx, "/* page_link_key */ SELECT array_remove(ARRAY[key, previous], NULL) FROM page_link_key").Scan(&keys)
		})
	})
	if err != nil {
		return nil, err
	}
	p.keys.Store(&linkKeys{keys, began})
	return keys, nil
}
