package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// Errors for a database whose schema is not the one this program was built for.
var (
	ErrOlder = errors.New("the database's schema is older than this program's: run `commerce migrate up`")
	ErrNewer = errors.New("the database's schema is newer than this program's: run a newer release of commerce")
)

// ErrUnreadable is for a database whose tables the user may not all read.
var ErrUnreadable = errors.New("no permission to read a table: see deploy/postgres/roles.sql")

// Querier is a connection, a pool or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check returns an error that wraps ErrOlder or ErrNewer if db's schema is not the one
// this program was built for, ErrUnreadable if the user may not read all of it, and another
// error if it cannot read the version. It does not change db.
func Check(ctx context.Context, db Querier) error {
	has, closed, err := state(ctx, db)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	switch wants := Latest(); {
	case has < wants:
		return fmt.Errorf("version %d, want %d: %w", has, wants, ErrOlder)
	case has > wants:
		return fmt.Errorf("version %d, want %d: %w", has, wants, ErrNewer)
	case closed != "":
		return fmt.Errorf("%s: %w", closed, ErrUnreadable)
	}
	return nil
}

// state returns the latest applied migration, 0 if there is none, and the tables that the user
// may not read: a release may add tables that a role made for the release before has no rights
// on. It is one statement, because instances check a database every second.
func state(ctx context.Context, db Querier) (version int64, closed string, err error) {
	err = db.QueryRow(ctx, `/* schema */ SELECT
		(SELECT coalesce(max(version_id), 0) FROM `+goose.DefaultTablename+` WHERE is_applied),
		(SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND NOT has_table_privilege(oid, 'SELECT'))`).Scan(&version, &closed)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == undefinedTable {
		return 0, "", nil
	}
	return version, closed, err
}

const undefinedTable = "42P01"

// Latest returns the version of the schema that this program was built for.
func Latest() int64 {
	all := names()
	version, _ := goose.NumericComponent(all[len(all)-1]) // a test checks every name
	return version
}
