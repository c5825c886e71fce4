package observe

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/connect"
	"commerce/deploy/inspect"
	"commerce/deploy/migrations"
)

// observePostgres reads one server. If a statement fails, its value stays unknown.
func observePostgres(ctx context.Context, c Config) (*inspect.Postgres, error) {
	db, err := connect.Postgres(ctx, c.DatabaseURL, connect.PostgresConfig{
		ApplicationName: "commerce check", MaxConns: 2, ConnectTimeout: patience, StatementTimeout: patience,
		// No prepared statements: behind a pooler, the next statement may use another connection.
		Edit: func(pool *pgxpool.Config) { pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec },
	})
	if err != nil {
		return nil, err
	}
	defer func() { go db.Close() }() // waits for connections that hang
	at := db.Config().ConnConfig
	p := &inspect.Postgres{Server: net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))}
	answers, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := db.Ping(answers); err != nil {
		p.Failure = failure(err)
		return p, nil
	}
	p.Clock = postgresClock(ctx, db, c.Now)
	_ = db.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, pg_is_in_recovery()").Scan(&p.Version, &p.Standby)
	_ = db.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')").Scan(&p.ICU)
	p.Settings = settings(ctx, db)
	p.Schema = schema(ctx, db)
	p.Unreadable, _ = tables(ctx, db, "relname = ANY($1) AND NOT has_table_privilege(oid, 'SELECT')", migrations.Tables())
	p.Role = rights(ctx, db)
	p.Writing = writing(ctx, db)
	if p.Standby != nil && !*p.Standby {
		p.Listening = listening(ctx, db)
	}
	if err := db.Ping(ctx); err != nil { // then what is missing is not hidden
		p.Failure = failure(err)
	}
	return p, nil
}

func postgresClock(ctx context.Context, db *pgxpool.Pool, now func() time.Time) *inspect.Clock {
	var at time.Time
	sent := now()
	if err := db.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&at); err != nil {
		return nil
	}
	return clock(at, sent, now())
}

// settings returns the settings that package inspect judges.
func settings(ctx context.Context, db *pgxpool.Pool) map[string]inspect.Setting {
	found := map[string]inspect.Setting{}
	rows, _ := db.Query(ctx, `
		SELECT name, setting, source IN ('user', 'database user', 'client') FROM pg_settings
		WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'idle_in_transaction_session_timeout')`)
	var name string
	var setting inspect.Setting
	_, _ = pgx.ForEachRow(rows, []any{&name, &setting.Value, &setting.Own}, func() error {
		found[name] = setting
		return nil
	})
	return found
}

func schema(ctx context.Context, db *pgxpool.Pool) inspect.Schema {
	err := migrations.Check(ctx, db)
	switch {
	case err == nil:
		return inspect.Schema{State: inspect.SchemaCurrent}
	case errors.Is(err, migrations.ErrRights):
		return inspect.Schema{State: inspect.SchemaHidden, Cause: versions(err, migrations.ErrRights)}
	case errors.Is(err, migrations.ErrOlder):
		return inspect.Schema{State: inspect.SchemaOlder, Cause: versions(err, migrations.ErrOlder)}
	case errors.Is(err, migrations.ErrEarly):
		return inspect.Schema{State: inspect.SchemaEarly, Cause: versions(err, migrations.ErrEarly)}
	}
	return inspect.Schema{Cause: failure(err)}
}

// versions returns the text that err adds to the reason that it wraps: the two versions, or the
// tables.
func versions(err, reason error) string { return strings.TrimSuffix(err.Error(), ": "+reason.Error()) }

// tables returns the tables of the schema that meet a condition on a list, $1.
func tables(ctx context.Context, db *pgxpool.Pool, condition string, list []string) ([]string, error) {
	rows, err := db.Query(ctx, `
		SELECT relname FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND `+condition+` ORDER BY relname`, list)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// rights returns what the role may write, by itself and as any role that it is a member of.
func rights(ctx context.Context, db *pgxpool.Pool) *inspect.Role {
	var r inspect.Role
	err := db.QueryRow(ctx, `
		SELECT bool_or(rolsuper OR rolname IN ('pg_execute_server_program', 'pg_write_server_files')), bool_or(rolcreaterole)
		FROM pg_roles WHERE pg_has_role(oid, 'MEMBER')`).Scan(&r.Superuser, &r.CreatesRoles)
	if err != nil {
		return nil
	}
	if r.Writable, err = tables(ctx, db, writable, migrations.Writes()); err != nil {
		return nil
	}
	err = db.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM pg_attribute
			WHERE attrelid = to_regclass('api_tokens') AND attname = 'last_used_at' AND has_column_privilege(attrelid, attnum, 'UPDATE'))`).Scan(&r.LastUsed)
	if err != nil {
		return nil
	}
	return &r
}

// writable is whether the role may write to a table or to some of its columns, except for what the
// service writes, $1.
const writable = `EXISTS (
	SELECT FROM pg_roles, pg_attribute
	WHERE pg_has_role(pg_roles.oid, 'MEMBER') AND attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
		AND (has_table_privilege(pg_roles.oid, attrelid, 'TRUNCATE')
			OR has_table_privilege(pg_roles.oid, attrelid, 'DELETE') AND relname || ' DELETE' <> ALL($1)
			OR has_column_privilege(pg_roles.oid, attrelid, attnum, 'INSERT') AND relname || ' INSERT' <> ALL($1)
			OR has_column_privilege(pg_roles.oid, attrelid, attnum, 'UPDATE') AND relname || ' UPDATE' <> ALL($1)
				AND format('%s UPDATE (%s)', relname, attname) <> ALL($1)))`

// writing returns the oldest transaction that has written something, including prepared ones.
func writing(ctx context.Context, db *pgxpool.Pool) *inspect.Writing {
	var w inspect.Writing
	var seconds float64
	err := db.QueryRow(ctx, `
		SELECT coalesce(extract(epoch FROM clock_timestamp() - min(begun)), 0)::float8,
			pg_has_role('pg_read_all_stats', 'USAGE') FROM (
			SELECT xact_start FROM pg_stat_activity WHERE backend_xid IS NOT NULL
			UNION ALL
			SELECT prepared FROM pg_prepared_xacts
		) AS writing (begun)`).Scan(&seconds, &w.SeesAll)
	if err != nil {
		return nil
	}
	w.For = time.Duration(seconds * float64(time.Second))
	return &w
}

// heardWithin is how long to wait for a notification.
const heardWithin = time.Second

// listening reports whether a notification from one connection reaches another one, or nil if
// that cannot be tested. A pooler in transaction mode accepts LISTEN but delivers nothing.
func listening(ctx context.Context, db *pgxpool.Pool) *bool {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return nil
	}
	defer conn.Release()
	const channel = "commerce_check"
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return nil
	}
	defer conn.Conn().Close(context.WithoutCancel(ctx)) // a later user of this connection must not listen
	message := rand.Text()
	if _, err := db.Exec(ctx, "SELECT pg_notify($1, $2)", channel, message); err != nil {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, heardWithin)
	defer cancel()
	for {
		heard, err := conn.Conn().WaitForNotification(wait)
		switch {
		case err != nil && ctx.Err() == nil && pgconn.Timeout(err):
			return new(false)
		case err != nil:
			return nil
		case heard.Payload == message: // another process may run the same check
			return new(true)
		}
	}
}
