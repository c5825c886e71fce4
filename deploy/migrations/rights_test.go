package migrations_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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
		if err := m.Grant(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, conn, "SET ROLE "+quoted)
	if err := migrations.Check(t.Context(), conn); err != nil {
		t.Errorf("Check: %v", err)
	}
	exec(t, conn, "UPDATE api_tokens SET last_used_at = now()")
	for _, forbidden := range []string{
		"SELECT FROM anothers", "UPDATE api_tokens SET revoked_at = NULL", "DELETE FROM subscriptions", "INSERT INTO goose_db_version DEFAULT VALUES",
	} {
		_, err := conn.Exec(t.Context(), forbidden)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "42501" {
			t.Errorf("%s: %v, want insufficient_privilege", forbidden, err)
		}
	}
}

// In a schema that only its owner may use, and that lacks the tables of changes.
func TestGrant_OpensTheSchemaOfAShardedDatabase(t *testing.T) {
	t.Parallel()
	conn, m := sharded(t)
	role := newRole("granted")
	exec(t, conn, "REVOKE USAGE ON SCHEMA public FROM PUBLIC; CREATE ROLE "+role)
	if err := m.Grant(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "SET ROLE "+role)
	exec(t, conn, "SELECT FROM subscriptions")
}

func TestCheckRole_RefusesARoleThatDoesNotExist(t *testing.T) {
	t.Parallel()
	m := open(t, ephemeral.Migrated(t))
	if err := m.CheckRole(t.Context(), "nobody"); !errors.Is(err, migrations.ErrNoRole) {
		t.Errorf("a role that does not exist: %v", err)
	}
	if err := m.CheckRole(t.Context(), "pg_monitor"); err != nil {
		t.Errorf("a role that exists: %v", err)
	}
}
