package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
)

// Errors for a database whose schema this program cannot use or change.
var (
	// ErrOlder is for a schema that lacks migrations of this program.
	ErrOlder = errors.New("the database's schema is older than this program's: run `commerce migrate up`")

	// ErrNewer is for a schema that only a newer release can migrate. It can be used: migrations
	// only add what the release before does not need to know.
	ErrNewer = errors.New("the database's schema is newer than this program's: run a newer release of commerce")

	// ErrEarly is for a schema from before the first release.
	ErrEarly = errors.New("the database's schema is from before the first release, which no migration upgrades: dump the rows that you need, create a new database, run `commerce migrate up` there, and insert the rows")
)

// ErrUnreadable is for a database whose tables the user may not all read.
var ErrUnreadable = errors.New("no permission to read a table: see deploy/postgres/roles.sql")

// Querier is a connection, a pool or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check returns an error that wraps ErrOlder or ErrEarly if db lacks a part of the schema that this
// program was built for, ErrUnreadable if the user may not read all of it, and another error if it
// cannot read the version. A newer schema is no error. It does not change db.
func Check(ctx context.Context, db Querier) error {
	has, closed, err := state(ctx, db)
	switch {
	case err != nil:
		return err
	case isEarly(has):
		return versions(has, ErrEarly)
	case has < Latest():
		return versions(has, ErrOlder)
	case closed != "":
		return fmt.Errorf("%s: %w", closed, ErrUnreadable)
	}
	return nil
}

// CheckMigratable returns an error that wraps ErrNewer or ErrEarly if this program cannot migrate
// the schema of db, and another error if it cannot read the version.
func CheckMigratable(ctx context.Context, db Querier) error {
	has, _, err := state(ctx, db)
	switch {
	case err != nil:
		return err
	case isEarly(has):
		return versions(has, ErrEarly)
	case has > Latest():
		return versions(has, ErrNewer)
	}
	return nil
}

func isEarly(version int64) bool { return version > 0 && version < first }

func versions(has int64, reason error) error {
	return fmt.Errorf("version %d, want %d: %w", has, Latest(), reason)
}

// first is the version of the first migration. The schemas from before the first release had lower
// ones.
const first = 100

// tables are the tables of the migrations. The schema may have others, of a newer release or of
// somebody else, which this program need not read.
var tables = []string{
	"api_tokens", "coupon_products", "coupon_uses", "coupons", "customers", "deleted_subscriptions", "field_options", "fields",
	"goose_db_version", "page_link_key", "payment_methods", "plans", "products", "pruned_deletions", "publishable_keys",
	"saved_cards", "stores", "subscription_timelines", "subscriptions",
}

// state returns the latest applied migration, 0 if there is none, and which of the tables the user
// may not read. It is one statement, because instances check a database every second.
func state(ctx context.Context, db Querier) (version int64, closed string, err error) {
	err = db.QueryRow(ctx, `/* schema */ SELECT
		(SELECT coalesce(max(version_id), 0) FROM `+goose.DefaultTablename+` WHERE is_applied),
		(SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname = ANY($1) AND NOT has_table_privilege(oid, 'SELECT'))`, tables).Scan(&version, &closed)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == undefinedTable {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("read schema version: %w", err)
	}
	return version, closed, nil
}

const undefinedTable = "42P01"

// Latest returns the version of the schema that this program was built for.
func Latest() int64 {
	all := names()
	version, _ := goose.NumericComponent(all[len(all)-1]) // a test checks every name
	return version
}
