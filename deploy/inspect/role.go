package inspect

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"commerce/deploy/migrations"
)

// What the role of DATABASE_URL can do.

// tables returns the tables of the schema that meet a condition on a list, $1.
func (s *postgresServer) tables(ctx context.Context, condition string, list []string) ([]string, error) {
	rows, _ := s.db.Query(ctx, `
		SELECT relname FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND `+condition+` ORDER BY relname`, list)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (s *postgresServer) judgeReads(ctx context.Context) {
	unreadable, err := s.tables(ctx, "relname = ANY($1) AND NOT has_table_privilege(oid, 'SELECT')", migrations.Tables())
	s.judge("postgres_reads",
		unknown(err != nil, "has_table_privilege", "It is not visible whether the role may read all tables of the service."),
		serious(len(unreadable) > 0, grants, "The service does not become ready, because its role may not read %s.", few(unreadable)),
		ok("The role may read all tables of the service."))
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

// judgeWrites judges what the role may write, by itself and as any role that it is a member of.
// current reports whether the schema is.
func (s *postgresServer) judgeWrites(ctx context.Context, current bool) {
	const setting = "DATABASE_URL: use commerce_service (docs/operations.md, Roles)"
	var superuser, createsRoles, lastUsed bool
	var tables []string
	err := s.db.QueryRow(ctx, `
		SELECT bool_or(rolsuper OR rolname IN ('pg_execute_server_program', 'pg_write_server_files')), bool_or(rolcreaterole), EXISTS (
			SELECT FROM pg_attribute
			WHERE attrelid = to_regclass('api_tokens') AND attname = 'last_used_at' AND has_column_privilege(attrelid, attnum, 'UPDATE'))
		FROM pg_roles WHERE pg_has_role(oid, 'MEMBER')`).Scan(&superuser, &createsRoles, &lastUsed)
	if err == nil {
		tables, err = s.tables(ctx, writable, migrations.Writes())
	}
	s.judge("postgres_writes",
		unknown(err != nil, "has_table_privilege", "It is not visible whether the role may write more than it needs to."),
		warning(superuser, setting, "If the service's password leaks, others can do anything in Postgres: the role is a superuser or can become one."),
		warning(createsRoles, setting, "If the service's password leaks, others can get the rights of other roles: the role may create roles."),
		warning(len(tables) > 0, setting, "If the service's password leaks, others can write to %s. The service does not.", few(tables)),
		ok("The role may write only what the service writes."))
	if current && !s.standby {
		s.judge("postgres_last_used",
			unknown(err != nil, "has_column_privilege", "It is not visible whether uses of API tokens are recorded."),
			warning(!lastUsed, grants, "Uses of API tokens are not recorded, because the role may not update api_tokens.last_used_at."),
			ok("The role can record uses of API tokens."))
	}
}

func few(names []string) string {
	const shown = 3
	if len(names) > shown+1 {
		return fmt.Sprintf("%s and %d other tables", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

const heardWithin = time.Second

// notifies reports whether a notification from one connection reaches another one. A pooler in
// transaction mode accepts LISTEN but delivers nothing.
func (s *postgresServer) notifies(ctx context.Context) (bool, error) {
	conn, err := s.db.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	const channel = "commerce_check"
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return false, err
	}
	defer conn.Conn().Close(context.WithoutCancel(ctx)) // a later user of this connection must not listen
	message := rand.Text()
	if _, err := s.db.Exec(ctx, "SELECT pg_notify($1, $2)", channel, message); err != nil {
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, heardWithin)
	defer cancel()
	for {
		heard, err := conn.Conn().WaitForNotification(wait)
		switch {
		case err != nil && ctx.Err() == nil && pgconn.Timeout(err):
			return false, nil
		case err != nil:
			return false, err
		case heard.Payload == message: // another process may run the same check
			return true, nil
		}
	}
}
