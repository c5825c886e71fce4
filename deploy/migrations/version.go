package migrations

import (
	"cmp"
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

// ErrRights is for a user who lacks rights on a table of the schema.
var ErrRights = errors.New("the role lacks rights: set SERVICE_ROLE, or for pruning PRUNE_ROLE, to it and run `commerce migrate up` as the owner of the tables")

// Querier is a connection, a pool or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check returns an error that wraps ErrRights if the user lacks rights that the service needs on a
// table of the schema, ErrOlder or ErrEarly if db lacks a part of the schema that this program was
// built for, and another error if it cannot read the version. A newer schema is no error. It does
// not change db.
func Check(ctx context.Context, db Querier) error {
	has, closed, err := state(ctx, db)
	if err == nil && closed != "" {
		err = fmt.Errorf("%s: %w", closed, ErrRights)
	}
	return cmp.Or(err, versions(has, has < Latest(), ErrOlder))
}

// CheckVersion is Check for a user who does not need all rights of the service.
func CheckVersion(ctx context.Context, db Querier) error {
	has, _, err := state(ctx, db)
	return cmp.Or(err, versions(has, has < Latest(), ErrOlder))
}

// CheckMigratable returns an error that wraps ErrNewer or ErrEarly if this program cannot migrate
// the schema of db, and another error if it cannot read the version.
func CheckMigratable(ctx context.Context, db Querier) error {
	has, _, err := state(ctx, db)
	return cmp.Or(err, versions(has, has > Latest(), ErrNewer))
}

// versions returns the error of a schema that is from before the first release, or unusable for
// another reason.
func versions(has int64, unusable bool, reason error) error {
	if has > 0 && has < first {
		unusable, reason = true, ErrEarly
	}
	if !unusable {
		return nil
	}
	return fmt.Errorf("version %d, want %d: %w", has, Latest(), reason)
}

// first is the version of the first migration. The schemas from before the first release had lower
// ones.
const first = 100

// state returns the latest applied migration, 0 if there is none, and on which of the tables the
// user lacks rights. It is one statement, because instances check a database every second.
func state(ctx context.Context, db Querier) (version int64, closed string, err error) {
	err = db.QueryRow(ctx, `/* schema */ SELECT
		(SELECT coalesce(max(version_id), 0) FROM `+goose.DefaultTablename+` WHERE is_applied),
		(SELECT coalesce(string_agg(DISTINCT relname, ', ' ORDER BY relname), '')
			FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
				AND relname = ANY($1) AND NOT has_table_privilege(oid, 'SELECT'))`, Tables()).Scan(&version, &closed)
	refused, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return version, closed, nil
	case refused != nil && refused.Code == "42P01": // undefined_table
		return 0, "", nil
	case refused != nil && refused.Code == "42501": // insufficient_privilege
		return 0, "", fmt.Errorf("%s: %w", goose.DefaultTablename, ErrRights)
	}
	return 0, "", fmt.Errorf("read schema version: %w", err)
}

// Latest returns the version of the schema that this program was built for.
func Latest() int64 {
	all := names()
	version, _ := goose.NumericComponent(all[len(all)-1]) // a test checks every name
	return version
}
