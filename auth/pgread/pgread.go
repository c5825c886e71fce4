// Package pgread repeats reads of Postgres whose prepared statement the server can no longer run.
package pgread

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Rows returns the rows of a query, each as scan returns it.
func Rows[T any](ctx context.Context, pool *pgxpool.Pool, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		return On(ctx, conn, func() (err error) {
			rows, _ := conn.Query(ctx, sql, args...) // CollectRows also returns the error of Query
			all, err = pgx.CollectRows(rows, scan)
			return err
		})
	})
	return all, err
}

// On calls read, which uses conn. If the columns of a prepared statement have other types since it was
// prepared, as after ALTER TABLE, or if it no longer exists, as after DISCARD ALL, On calls read once
// more, with new statements. read must leave no transaction open, and begin from the beginning.
func On(ctx context.Context, conn *pgxpool.Conn, read func() error) error {
	err := read()
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refused.Code != "0A000" && refused.Code != "26000" { // feature_not_supported, invalid_sql_statement_name
		return err
	}
	if err := conn.Conn().DeallocateAll(ctx); err != nil {
		return err
	}
	return read()
}
