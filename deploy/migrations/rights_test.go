package migrations_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

func TestGrant_GivesWhatARoleNeedsOnOurTablesAlone(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	exec(t, conn, "CREATE TABLE anothers ()")
	beRoleWith := func(rights []string) {
		number := time.Now().UnixNano() // roles belong to all databases
		role, quoted := fmt.Sprintf(`"Granted" %d`, number), fmt.Sprintf(`"""Granted"" %d"`, number)
		exec(t, conn, "RESET ROLE; CREATE ROLE "+quoted)
		for range 2 { // safe to repeat
			assert.NoError(t, m.Grant(t.Context(), role, rights))
		}
		exec(t, conn, "SET ROLE "+quoted)
	}
	forbidden := []string{
		"SELECT FROM anothers", "UPDATE api_tokens SET revoked_at = NULL", "DELETE FROM subscriptions", "INSERT INTO goose_db_version DEFAULT VALUES",
	}
	beRoleWith(migrations.ServiceRights())
	assert.Succeeds(t, migrations.Check(t.Context(), conn), "Check")
	exec(t, conn, "UPDATE api_tokens SET last_used_at = now()")
	wantRefused(t, conn, append(forbidden, "DELETE FROM deleted_subscriptions")...)

	beRoleWith(migrations.PruneRights())
	assert.Succeeds(t, migrations.CheckVersion(t.Context(), conn), "CheckVersion")
	exec(t, conn, "DELETE FROM deleted_subscriptions")
	wantRefused(t, conn, append(forbidden, "SELECT FROM customers", "UPDATE api_tokens SET last_used_at = now()",
		"SELECT metadata FROM subscriptions", "DELETE FROM pruned_deletions", "INSERT INTO deleted_subscriptions DEFAULT VALUES")...)
}

// wantRefused expects that each statement is not permitted.
func wantRefused(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, forbidden := range statements {
		_, err := conn.Exec(t.Context(), forbidden)
		refused, ok := errors.AsType[*pgconn.PgError](err)
		assert.That(t, ok && refused.Code == "42501", "%s: %v, want insufficient_privilege", forbidden, err)
	}
}

// In a schema that only its owner may use, and that lacks the tables of changes.
func TestGrant_OpensTheSchemaOfAShardedDatabase(t *testing.T) {
	t.Parallel()
	conn, m := sharded(t)
	role := newRole("granted")
	exec(t, conn, "REVOKE USAGE ON SCHEMA public FROM PUBLIC; CREATE ROLE "+role)
	assert.NoError(t, m.Grant(t.Context(), role, migrations.ServiceRights()))
	exec(t, conn, "SET ROLE "+role)
	exec(t, conn, "SELECT FROM subscriptions")
}

func TestCheckRole_RefusesARoleThatDoesNotExist(t *testing.T) {
	t.Parallel()
	m := open(t, ephemeral.Migrated(t))
	assert.ErrorIs(t, m.CheckRole(t.Context(), "nobody"), migrations.ErrNoRole, "a role that does not exist")
	assert.Succeeds(t, m.CheckRole(t.Context(), "pg_monitor"), "a role that exists")
}
