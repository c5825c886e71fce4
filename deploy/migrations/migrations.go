// Package migrations holds the Postgres schema as numbered, reversible migrations. It
// also checks whether a database has the schema that this program was built for.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"path"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Migrator changes the schema of one database. Several Migrators of one database wait
// for each other, up to five minutes.
type Migrator struct {
	db      *sql.DB
	all     *goose.Provider
	sharded *goose.Provider // without leftOut
}

type Step struct {
	Version int64
	Name    string // of its file
	Applied bool
	LeftOut bool // the database is sharded, so Up does not apply it
}

// Open returns a Migrator for the database of config. It must connect directly, because
// its lock does not work through a transaction pooler. The caller closes it.
func Open(config *pgx.ConnConfig) (*Migrator, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, fmt.Errorf("create migration lock: %w", err)
	}
	m := &Migrator{db: stdlib.OpenDB(*config)}
	read := func(leaveOut ...int64) (*goose.Provider, error) {
		return goose.NewProvider(goose.DialectPostgres, m.db, files,
			goose.WithExcludeVersions(leaveOut),
			goose.WithSessionLocker(locker),
			goose.WithDisableGlobalRegistry(true),
			goose.WithSlog(slog.New(slog.DiscardHandler)))
	}
	if m.all, err = read(); err == nil {
		m.sharded, err = read(leftOut)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read migrations: %w", err), m.db.Close())
	}
	return m, nil
}

func (m *Migrator) Close() error { return m.db.Close() }

type Result struct {
	Applied []Step

	// Restarted is true if the database was a copy, so that the changes of its
	// subscriptions were restarted. Stamped is the number of subscriptions.
	Restarted bool
	Stamped   int64
}

// Up applies the pending migrations, and then restarts the changes of subscriptions if the
// database is a copy of another one. In a database of UpSharded, it does what UpSharded does.
func (m *Migrator) Up(ctx context.Context) (Result, error) {
	provider, err := m.provider(ctx)
	if err != nil {
		return Result{}, err
	}
	r, err := up(ctx, provider)
	if err != nil || provider == m.sharded {
		return r, err
	}
	if r.Restarted, r.Stamped, err = restartChanges(ctx, m.db); err != nil {
		return r, fmt.Errorf("restart the changes of subscriptions: %w", err)
	}
	return r, nil
}

func up(ctx context.Context, p *goose.Provider) (r Result, err error) {
	results, err := p.Up(ctx)
	if err != nil {
		return r, failed("migrate up", err)
	}
	for _, applied := range results {
		r.Applied = append(r.Applied, step(applied.Source, true))
	}
	return r, nil
}

// Down rolls back the latest migration and deletes its tables' data. It returns nil if
// no migration is applied.
func (m *Migrator) Down(ctx context.Context) (*Step, error) {
	provider, err := m.provider(ctx)
	if err != nil {
		return nil, err
	}
	result, err := provider.Down(ctx)
	switch {
	case errors.Is(err, goose.ErrNoNextVersion):
		return nil, nil
	case err != nil:
		return nil, failed("migrate down", err)
	}
	return new(step(result.Source, false)), nil
}

func (m *Migrator) Status(ctx context.Context) ([]Step, error) {
	provider, err := m.provider(ctx)
	if err != nil {
		return nil, err
	}
	known, err := m.all.Status(ctx)
	if err != nil {
		return nil, failed("migration status", err)
	}
	steps := make([]Step, len(known))
	for i, s := range known {
		steps[i] = step(s.Source, s.State == goose.StateApplied)
		steps[i].LeftOut = provider == m.sharded && s.Source.Version == leftOut
	}
	return steps, nil
}

func step(s *goose.Source, applied bool) Step {
	return Step{Version: s.Version, Name: path.Base(s.Path), Applied: applied}
}

// failed adds the file name of the failed migration to err.
func failed(what string, err error) error {
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		return fmt.Errorf("%s: %s: %w", what, path.Base(partial.Failed.Source.Path), partial.Err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Digest returns a hash of all migrations and their versions.
func Digest() string {
	sum := fnv.New64a()
	for _, name := range names() {
		content, _ := files.ReadFile(name) // embedded, so it exists
		fmt.Fprintf(sum, "%s %d ", name, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func names() []string {
	names, _ := fs.Glob(files, "*.sql") // the pattern is valid
	return names
}

// leftOut is the migration that a sharded database does not have: the changes of subscriptions,
// whose triggers Citus refuses.
const leftOut int64 = 102

// ErrHasChanges is for a database that cannot become a sharded one, because it has leftOut.
var ErrHasChanges = errors.New("the database has 00102_changes.sql: run `commerce migrate down` until `commerce migrate status` lists it as pending")

// UpSharded applies the pending migrations for a database that Citus shards by store (see
// docs/scale.md). It leaves out the changes of subscriptions. From then on, Up does so too. It
// returns ErrHasChanges if the database has them.
func (m *Migrator) UpSharded(ctx context.Context) (Result, error) {
	has, _, err := m.applied(ctx)
	if has {
		err = ErrHasChanges
	}
	if err != nil {
		return Result{}, err
	}
	return up(ctx, m.sharded)
}

// provider returns the migrations of the database: those of sharded if UpSharded has left one out,
// otherwise all.
func (m *Migrator) provider(ctx context.Context) (*goose.Provider, error) {
	changes, later, err := m.applied(ctx)
	if later && !changes {
		return m.sharded, err
	}
	return m.all, err
}

// applied reports whether leftOut is applied, and any later migration.
func (m *Migrator) applied(ctx context.Context) (changes, later bool, err error) {
	if err = m.db.QueryRowContext(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&later); err == nil && later {
		err = m.db.QueryRowContext(ctx, `SELECT coalesce(bool_or(version_id = $1), false), coalesce(bool_or(version_id > $1), false)
			FROM goose_db_version WHERE is_applied`, leftOut).Scan(&changes, &later)
	}
	if err != nil {
		return false, false, fmt.Errorf("read schema version: %w", err)
	}
	return changes, later, nil
}
