package migrations_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

func TestGrant_GivesWhatTheServiceNeedsOnOurTablesAlone(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	number := time.Now().UnixNano() // roles belong to all databases
	role, quoted := fmt.Sprintf(`"Granted" %d`, number), fmt.Sprintf(`"""Granted"" %d"`, number)
	exec(t, conn, "CREATE TABLE anothers (); CREATE ROLE "+quoted)
	for range 2 { // safe to repeat
		assert.NoError(t, m.Grant(t.Context(), role))
	}
	exec(t, conn, "SET ROLE "+quoted)
	assert.Succeeds(t, migrations.Check(t.Context(), conn), "Check")
	exec(t, conn, "UPDATE api_tokens SET last_used_at = now()")
	for _, forbidden := range []string{
		"SELECT FROM anothers", "UPDATE api_tokens SET revoked_at = NULL", "DELETE FROM subscriptions", "INSERT INTO goose_db_version DEFAULT VALUES",
	} {
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
	assert.NoError(t, m.Grant(t.Context(), role))
	exec(t, conn, "SET ROLE "+role)
	exec(t, conn, "SELECT FROM subscriptions")
}

func TestCheckRole_RefusesARoleThatDoesNotExist(t *testing.T) {
	t.Parallel()
	m := open(t, ephemeral.Migrated(t))
	assert.ErrorIs(t, m.CheckRole(t.Context(), "nobody"), migrations.ErrNoRole, "a role that does not exist")
	assert.Succeeds(t, m.CheckRole(t.Context(), "pg_monitor"), "a role that exists")
}
