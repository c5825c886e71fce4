package observe_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/ephemeral"
	"commerce/deploy/inspect"
	"commerce/deploy/migrations"
	"commerce/deploy/observe"
)

// database is a database of a Postgres server that belongs to one test.
type database struct {
	owner   *pgx.Conn // a superuser
	service string    // the URL of commerce_service
	url     string    // the URL of a superuser
}

// startDatabase starts a Postgres without problems, with the roles of
// deploy/postgres/roles.sql and the given additional settings.
func startDatabase(t *testing.T, settings ...string) (*ephemeral.Server, database) {
	t.Helper()
	server := ephemeral.StartPostgres(t, append([]string{"fsync=on", "full_page_writes=on"}, settings...)...)
	if err := ephemeral.Migrate(t.Context(), server.URL); err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	roles, err := os.ReadFile("../postgres/roles.sql")
	if err != nil {
		t.Fatal(err)
	}
	d := database{owner: owner, url: server.URL, service: as(t, server.URL, "commerce_service")}
	d.run(t, string(roles))
	if err := ephemeral.Grant(t.Context(), server.URL, "commerce_service"); err != nil {
		t.Fatal(err)
	}
	d.run(t, "ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '1min'")
	return server, d
}

// as returns the URL of another role.
func as(t *testing.T, rawURL, role string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

func (d database) run(t *testing.T, sql string) {
	t.Helper()
	if _, err := d.owner.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestPostgres_FindsNothingWrongWithAHealthyOne(t *testing.T) {
	t.Parallel()
	_, d := startDatabase(t)
	d.run(t, "CREATE ROLE watcher LOGIN IN ROLE commerce_service, pg_monitor")
	for role, want := range map[string]wrong{
		"commerce_service": {"postgres_long_transaction": inspect.Unknown}, // it sees only its own transactions
		"watcher":          {},
	} {
		got := findings(t, observe.Config{DatabaseURL: as(t, d.url, role)}, inspect.Expect{})
		wantWrong(t, role, got, want)
		wantOK(t, got, "postgres_answers", "postgres_version", "postgres_schema", "postgres_icu", "postgres_reads", "postgres_writes",
			"postgres_primary", "postgres_listen", "postgres_fsync", "postgres_full_page_writes", "postgres_synchronous_commit",
			"postgres_idle_in_transaction", "postgres_clock")
	}
}

func TestPostgres_FindsEachFault(t *testing.T) {
	t.Parallel()
	_, d := startDatabase(t)
	for _, test := range []struct {
		fault, mended string
		want          wrong
	}{
		{
			"ALTER DATABASE postgres SET synchronous_commit = off", "ALTER DATABASE postgres RESET synchronous_commit",
			wrong{"postgres_synchronous_commit": inspect.Warning},
		},
		{
			"ALTER ROLE commerce_service SET synchronous_commit = local", "ALTER ROLE commerce_service RESET synchronous_commit",
			wrong{"postgres_synchronous_commit": inspect.Unknown},
		},
		{
			"ALTER DATABASE postgres SET idle_in_transaction_session_timeout = 0",
			"ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '1min'",
			wrong{"postgres_idle_in_transaction": inspect.Warning},
		},
		{
			"ALTER ROLE commerce_service SET idle_in_transaction_session_timeout = 5",
			"ALTER ROLE commerce_service RESET idle_in_transaction_session_timeout",
			wrong{"postgres_idle_in_transaction": inspect.Unknown},
		},
		{
			"REVOKE SELECT ON products FROM commerce_service", "GRANT SELECT ON products TO commerce_service",
			wrong{"postgres_reads": inspect.Serious, "postgres_schema": inspect.Unknown},
		},
		{
			"REVOKE SELECT ON goose_db_version FROM commerce_service", "GRANT SELECT ON goose_db_version TO commerce_service",
			wrong{"postgres_reads": inspect.Serious, "postgres_schema": inspect.Unknown},
		},
		{
			"CREATE TABLE anothers ()", "DROP TABLE anothers",
			wrong{},
		},
		{
			"GRANT DELETE ON products TO commerce_service", "REVOKE DELETE ON products FROM commerce_service",
			wrong{"postgres_writes": inspect.Warning},
		},
		{
			"GRANT TRUNCATE ON products TO PUBLIC", "REVOKE TRUNCATE ON products FROM PUBLIC",
			wrong{"postgres_writes": inspect.Warning},
		},
		{
			"GRANT UPDATE (price) ON products TO commerce_service", "REVOKE UPDATE (price) ON products FROM commerce_service",
			wrong{"postgres_writes": inspect.Warning},
		},
		{
			"GRANT UPDATE (name) ON api_tokens TO commerce_service", "REVOKE UPDATE (name) ON api_tokens FROM commerce_service",
			wrong{"postgres_writes": inspect.Warning},
		},
		{
			"GRANT pg_write_all_data TO commerce_service", "REVOKE pg_write_all_data FROM commerce_service",
			wrong{"postgres_writes": inspect.Warning},
		},
		{
			"GRANT pg_execute_server_program TO commerce_service", "REVOKE pg_execute_server_program FROM commerce_service",
			wrong{"postgres_writes": inspect.Warning},
		},
		{
			"ALTER ROLE commerce_service CREATEROLE", "ALTER ROLE commerce_service NOCREATEROLE",
			wrong{"postgres_writes": inspect.Warning},
		},
		{
			"REVOKE UPDATE (last_used_at) ON api_tokens FROM commerce_service", "GRANT UPDATE (last_used_at) ON api_tokens TO commerce_service",
			wrong{"postgres_last_used": inspect.Warning},
		},
		{
			"UPDATE goose_db_version SET version_id = version_id - 99 WHERE version_id > 0", "UPDATE goose_db_version SET version_id = version_id + 99 WHERE version_id > 0",
			wrong{"postgres_schema": inspect.Serious},
		},
		{
			"UPDATE goose_db_version SET version_id = -version_id WHERE version_id > 1", "UPDATE goose_db_version SET version_id = abs(version_id)",
			wrong{"postgres_schema": inspect.Serious},
		},
		{
			"SET allow_system_table_mods = on; UPDATE pg_collation SET collname = 'gone' WHERE collname = 'und-x-icu'",
			"UPDATE pg_collation SET collname = 'und-x-icu' WHERE collname = 'gone'",
			wrong{"postgres_icu": inspect.Serious},
		},
	} {
		d.run(t, test.fault)
		test.want["postgres_long_transaction"] = inspect.Unknown
		wantWrong(t, test.fault, findings(t, observe.Config{DatabaseURL: d.service}, inspect.Expect{}), test.want)
		d.run(t, test.mended)
	}
	wantWrong(t, "mended", findings(t, observe.Config{DatabaseURL: d.service}, inspect.Expect{}),
		wrong{"postgres_long_transaction": inspect.Unknown})
}

func TestPostgres_FindsASuperuserAndAnOwner(t *testing.T) {
	t.Parallel()
	_, d := startDatabase(t)
	wantWrong(t, "superuser", findings(t, observe.Config{DatabaseURL: d.url}, inspect.Expect{}), wrong{"postgres_writes": inspect.Warning})

	d.run(t, "CREATE ROLE platform LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO platform")
	got := findings(t, observe.Config{DatabaseURL: as(t, d.url, "platform")}, inspect.Expect{})
	wantWrong(t, "a role that writes", got, wrong{"postgres_writes": inspect.Warning, "postgres_long_transaction": inspect.Unknown})
	if want := "api_tokens, coupon_products, coupon_uses and 1"; !strings.Contains(got[0].Message, want) {
		t.Errorf("%q does not say %q", got[0].Message, want)
	}
}

func TestPostgres_FindsAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	got := findings(t, observe.Config{DatabaseURL: ephemeral.Postgres(t)}, inspect.Expect{})
	want := fmt.Sprintf("(version 0, want %d).", migrations.Latest())
	if got[0].Code != "postgres_schema" || !strings.HasSuffix(got[0].Message, want) {
		t.Errorf("%+v", got[0])
	}
}

// The shared server has fsync and full_page_writes off.
func TestPostgres_FindsSettingsThatACrashNeeds(t *testing.T) {
	t.Parallel()
	wantWrong(t, "fsync", findings(t, observe.Config{DatabaseURL: ephemeral.Migrated(t)}, inspect.Expect{}), wrong{
		"postgres_fsync": inspect.Serious, "postgres_full_page_writes": inspect.Warning,
		"postgres_idle_in_transaction": inspect.Warning, "postgres_writes": inspect.Warning,
	})
}

func TestPostgres_ReadsHowLongTransactionsWrite(t *testing.T) {
	t.Parallel()
	_, d := startDatabase(t, "max_prepared_transactions=1", "autovacuum=off")
	writing := func(role string) time.Duration {
		seen, err := observe.Servers(t.Context(), observe.Config{DatabaseURL: as(t, d.url, role)})
		if err != nil || seen.Postgres.Writing == nil {
			t.Fatalf("%+v, %v", seen, err)
		}
		return seen.Postgres.Writing.For
	}
	const someTime = 30 * time.Millisecond
	d.run(t, "CREATE TABLE notes (id int)")
	d.run(t, "BEGIN; SELECT 1")
	time.Sleep(someTime)
	if w := writing("postgres"); w != 0 {
		t.Errorf("a transaction that only reads counts, for %v", w)
	}
	d.run(t, "INSERT INTO notes VALUES (1)")
	if w := writing("postgres"); w < someTime {
		t.Errorf("open for %v, want %v or more", w, someTime)
	}
	if w := writing("commerce_service"); w != 0 {
		t.Errorf("a role without pg_monitor sees a transaction of %v", w)
	}
	d.run(t, "PREPARE TRANSACTION 'one'")
	time.Sleep(someTime)
	if w := writing("commerce_service"); w < someTime {
		t.Errorf("prepared for %v, want %v or more", w, someTime)
	}
	d.run(t, "ROLLBACK PREPARED 'one'")
	if w := writing("postgres"); w != 0 {
		t.Errorf("after the rollback, one is open for %v", w)
	}
}

func TestPostgres_FindsAStandby(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	primary, _ := startDatabase(t)
	standby := ephemeral.StartStandby(t, primary)
	standby.CatchUp(primary)
	got := findings(t, observe.Config{DatabaseURL: as(t, standby.URL, "commerce_service")}, inspect.Expect{})
	wantWrong(t, "standby", got, wrong{
		"postgres_primary": inspect.Warning, "postgres_long_transaction": inspect.Unknown,
		"postgres_fsync": inspect.Serious, "postgres_full_page_writes": inspect.Warning, // as ephemeral starts standbys
	})
}

func TestPostgres_RefusesAWrongRole(t *testing.T) {
	t.Parallel()
	got := findings(t, observe.Config{DatabaseURL: as(t, ephemeral.Postgres(t), "nobody")}, inspect.Expect{})
	wantWrong(t, "nobody", got, wrong{"postgres_answers": inspect.Serious})
	if want := `role "nobody" does not exist`; !strings.Contains(got[0].Message, want) {
		t.Errorf("%q does not say %q", got[0].Message, want)
	}
}

func TestServers_RefuseWrongURLs(t *testing.T) {
	t.Parallel()
	_, redisErr := observe.Servers(t.Context(), observe.Config{RedisURL: "nonsense"})
	_, postgresErr := observe.Servers(t.Context(), observe.Config{DatabaseURL: "nonsense"})
	if err := errors.Join(redisErr, postgresErr); redisErr == nil || postgresErr == nil {
		t.Error(fmt.Sprint(err))
	}
}
