package inspect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

// database is a database of a Postgres server that belongs to one test.
type database struct {
	server  *ephemeral.Server
	owner   *pgx.Conn // a superuser
	service Config    // as commerce_service
}

// startDatabase starts a Postgres with deploy/postgres/roles.sql and more settings.
func startDatabase(t *testing.T, settings ...string) database {
	t.Helper()
	server := ephemeral.StartPostgres(t, append([]string{"fsync=on", "full_page_writes=on"}, settings...)...)
	roles, unread := os.ReadFile("../postgres/roles.sql")
	owner, refused := pgx.Connect(t.Context(), server.URL)
	assert.NoError(t, errors.Join(ephemeral.Migrate(t.Context(), server.URL), unread, refused))
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	d := database{server, owner, as(t, server.URL, "commerce_service")}
	d.run(t, string(roles))
	assert.NoError(t, ephemeral.Grant(t.Context(), server.URL, "commerce_service"))
	d.run(t, "ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '1min'")
	return d
}

// as returns the configuration of a check as another role.
func as(t *testing.T, rawURL, role string) Config {
	t.Helper()
	u := assert.Must(url.Parse(rawURL))(t)
	u.User = url.User(role)
	return Config{DatabaseURL: u.String()}
}

func (d database) run(t *testing.T, sql string) {
	t.Helper()
	_, err := d.owner.Exec(t.Context(), sql)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}

// ofService is what a healthy Postgres hides from commerce_service, which sees only its own
// transactions, and further findings.
func ofService(further wrong) wrong {
	all := wrong{"postgres_long_transaction": Unknown}
	for code, level := range further {
		all[code] = level
	}
	return all
}

func TestPostgres_FindsNothingWrongWithAHealthyOne(t *testing.T) {
	t.Parallel()
	d := startDatabase(t)
	d.run(t, "CREATE ROLE watcher LOGIN IN ROLE commerce_service, pg_monitor")
	for role, want := range map[string]wrong{"commerce_service": ofService(nil), "watcher": {}} {
		got := check(t, role, as(t, d.server.URL, role), want)
		wantOK(t, got, "postgres", "answers tls version schema icu reads writes last_used primary listen pooler fsync full_page_writes "+
			"synchronous_commit idle_in_transaction clock")
	}
}

var opposite = strings.NewReplacer("GRANT", "REVOKE", "REVOKE", "GRANT", " TO ", " FROM ", " FROM ", " TO ")

func TestPostgres_FindsEachFault(t *testing.T) {
	t.Parallel()
	d := startDatabase(t)
	for _, test := range []struct {
		fault, mended string // empty: the opposite
		want          wrong
	}{
		{
			"ALTER DATABASE postgres SET synchronous_commit = off", "ALTER DATABASE postgres RESET synchronous_commit",
			wrong{"postgres_synchronous_commit": Warning},
		},
		{
			"ALTER ROLE commerce_service SET synchronous_commit = local", "ALTER ROLE commerce_service RESET synchronous_commit",
			wrong{"postgres_synchronous_commit": Unknown},
		},
		{
			"ALTER DATABASE postgres SET idle_in_transaction_session_timeout = 0",
			"ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '1min'",
			wrong{"postgres_idle_in_transaction": Warning},
		},
		{
			"ALTER ROLE commerce_service SET idle_in_transaction_session_timeout = 5",
			"ALTER ROLE commerce_service RESET idle_in_transaction_session_timeout",
			wrong{"postgres_idle_in_transaction": Unknown},
		},
		{"REVOKE SELECT ON products FROM commerce_service", "", wrong{"postgres_reads": Serious, "postgres_schema": Unknown}},
		{"REVOKE SELECT ON goose_db_version FROM commerce_service", "", wrong{"postgres_reads": Serious, "postgres_schema": Unknown}},
		{"CREATE TABLE anothers ()", "DROP TABLE anothers", nil},
		{"GRANT DELETE ON products TO commerce_service", "", wrong{"postgres_writes": Warning}},
		{"GRANT TRUNCATE ON products TO PUBLIC", "", wrong{"postgres_writes": Warning}},
		{"GRANT UPDATE (price) ON products TO commerce_service", "", wrong{"postgres_writes": Warning}},
		{"GRANT UPDATE (name) ON api_tokens TO commerce_service", "", wrong{"postgres_writes": Warning}},
		{"GRANT pg_write_all_data TO commerce_service", "", wrong{"postgres_writes": Warning}},
		{"GRANT pg_execute_server_program TO commerce_service", "", wrong{"postgres_writes": Warning}},
		{"ALTER ROLE commerce_service CREATEROLE", "ALTER ROLE commerce_service NOCREATEROLE", wrong{"postgres_writes": Warning}},
		{"REVOKE UPDATE (last_used_at) ON api_tokens FROM commerce_service", "", wrong{"postgres_last_used": Warning}},
		{
			"UPDATE goose_db_version SET version_id = version_id - 99 WHERE version_id > 0",
			"UPDATE goose_db_version SET version_id = version_id + 99 WHERE version_id > 0",
			wrong{"postgres_schema": Serious},
		},
		{
			"UPDATE goose_db_version SET version_id = -version_id WHERE version_id > 1",
			"UPDATE goose_db_version SET version_id = abs(version_id)",
			wrong{"postgres_schema": Serious},
		},
		{
			"SET allow_system_table_mods = on; UPDATE pg_collation SET collname = 'gone' WHERE collname = 'und-x-icu'",
			"UPDATE pg_collation SET collname = 'und-x-icu' WHERE collname = 'gone'",
			wrong{"postgres_icu": Serious},
		},
		// What a managed service hides.
		{"REVOKE SELECT ON pg_collation FROM PUBLIC", "", wrong{"postgres_icu": Unknown}},
		{"REVOKE SELECT ON pg_stat_activity FROM PUBLIC", "", nil},
		{"REVOKE EXECUTE ON FUNCTION clock_timestamp() FROM PUBLIC", "", wrong{"postgres_clock": Unknown}},
		{"REVOKE EXECUTE ON FUNCTION pg_is_in_recovery() FROM PUBLIC", "", wrong{"postgres_version": Unknown, "postgres_primary": Unknown}},
		{"REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC", "", wrong{"postgres_listen": Unknown}},
		{"REVOKE SELECT ON pg_roles FROM PUBLIC", "", wrong{"postgres_writes": Unknown, "postgres_last_used": Unknown}},
		{
			"REVOKE EXECUTE ON FUNCTION has_table_privilege(oid, text) FROM PUBLIC", "",
			wrong{"postgres_reads": Unknown, "postgres_schema": Unknown},
		},
		{
			"REVOKE SELECT ON pg_settings FROM PUBLIC", "",
			wrong{
				"postgres_fsync": Unknown, "postgres_full_page_writes": Unknown,
				"postgres_synchronous_commit": Unknown, "postgres_idle_in_transaction": Unknown,
			},
		},
	} {
		d.run(t, test.fault)
		check(t, test.fault, d.service, ofService(test.want))
		if test.mended == "" {
			test.mended = opposite.Replace(test.fault)
		}
		d.run(t, test.mended)
	}
	check(t, "mended", d.service, ofService(nil))
}

func TestPostgres_FindsASuperuserAndAnOwner(t *testing.T) {
	t.Parallel()
	d := startDatabase(t)
	check(t, "superuser", Config{DatabaseURL: d.server.URL}, wrong{"postgres_writes": Warning})

	d.run(t, "CREATE ROLE platform LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO platform")
	got := check(t, "a role that writes", as(t, d.server.URL, "platform"), ofService(wrong{"postgres_writes": Warning}))
	assert.That(t, strings.Contains(got[0].Message, "api_tokens, coupon_products, coupon_uses and 1"), "%+v", got[0])
}

// The shared server has fsync and full_page_writes off.
func TestPostgres_FindsSettingsThatACrashNeeds(t *testing.T) {
	t.Parallel()
	want := wrong{
		"postgres_fsync": Serious, "postgres_full_page_writes": Warning,
		"postgres_idle_in_transaction": Warning, "postgres_writes": Warning,
	}
	check(t, "migrated", Config{DatabaseURL: ephemeral.Migrated(t)}, want)
	want["postgres_schema"] = Serious
	got := check(t, "empty", Config{DatabaseURL: ephemeral.Postgres(t)}, want)
	assert.That(t, strings.Contains(fmt.Sprint(got), fmt.Sprintf("(version 0, want %d).", migrations.Latest())),
		"no versions: %+v", got)
}

func TestPostgres_ReadsHowLongTransactionsWrite(t *testing.T) {
	t.Parallel()
	d := startDatabase(t, "max_prepared_transactions=1", "autovacuum=off")
	const someTime = 30 * time.Millisecond
	wantAge := func(what, role string, least, most time.Duration) {
		t.Helper()
		pool := assert.Must(pgxpool.New(t.Context(), as(t, d.server.URL, role).DatabaseURL))(t)
		defer pool.Close()
		s := postgresServer{db: pool}
		age, _ := s.oldestWriting(t.Context(), Config{})
		assert.That(t, age >= least && age <= most, "%s: open for %v, want %v or more", what, age, least)
	}
	d.run(t, "CREATE TABLE notes (id int)")
	d.run(t, "BEGIN; SELECT 1")
	time.Sleep(someTime)
	wantAge("only reads", "postgres", 0, 0)
	d.run(t, "INSERT INTO notes VALUES (1)")
	wantAge("writes", "postgres", someTime, time.Minute)
	wantAge("writes, seen without pg_monitor", "commerce_service", 0, 0)
	d.wantAgeOfNext(t, someTime)
	d.run(t, "PREPARE TRANSACTION 'one'")
	time.Sleep(someTime)
	wantAge("prepared", "commerce_service", someTime, time.Minute)
	d.run(t, "ROLLBACK PREPARED 'one'")
	wantAge("rolled back", "postgres", 0, 0)
}

// wantAgeOfNext compares checks of a role that sees only its own transactions. Another one has committed after the oldest began.
func (d database) wantAgeOfNext(t *testing.T, age time.Duration) {
	t.Helper()
	other := assert.Must(pgxpool.New(t.Context(), as(t, d.server.URL, "postgres").DatabaseURL))(t)
	defer other.Close()
	assert.Must(other.Exec(t.Context(), "SELECT pg_current_xact_id()"))(t)
	pool := assert.Must(pgxpool.New(t.Context(), as(t, d.server.URL, "commerce_service").DatabaseURL))(t)
	defer pool.Close()
	now := time.Now()
	c := Config{Last: new(Last), Now: func() time.Time { return now }}
	s := postgresServer{db: pool}
	for i := range time.Duration(3) {
		got, known := s.oldestWriting(t.Context(), c)
		assert.That(t, known && got == i*age, "check %d: open for %v (known: %t), want %v", i, got, known, i*age)
		now = now.Add(age)
	}
	c.Last = &Last{writing: "1", since: now.Add(-time.Hour)}
	got, _ := s.oldestWriting(t.Context(), c)
	assert.Equal(t, got, 0, "age of a transaction that another one came before")
}

func TestPostgres_FindsAStandby(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	primary := startDatabase(t).server
	standby := ephemeral.StartStandby(t, primary)
	standby.CatchUp(primary)
	check(t, "standby", as(t, standby.URL, "commerce_service"), ofService(wrong{
		"postgres_primary": Serious, "postgres_fsync": Serious, "postgres_full_page_writes": Warning, // as ephemeral starts standbys
	}))
}

func TestPostgres_RefusesAWrongRole(t *testing.T) {
	t.Parallel()
	got := check(t, "nobody", as(t, ephemeral.Postgres(t), "nobody"), wrong{"postgres_answers": Serious})
	assert.That(t, strings.Contains(got[0].Message, `role "nobody" does not exist`), "%+v", got[0])
}

// serve answers each connection to an address of its own, until the test ends.
func serve(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
	listener := assert.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			answer(conn)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-accepting })
	return listener.Addr().String()
}

// The server at an address may not be a database.
func TestPostgres_ShowsNoUserOfWhatIsNotPostgres(t *testing.T) {
	t.Parallel()
	addr := serve(t, func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		conn.Close()
	})
	got := check(t, "a web server", Config{DatabaseURL: "postgres://someone:hunter2@" + addr + "/shop"}, wrong{"postgres_answers": Serious})
	said := got[0].Message
	assert.That(t, !strings.Contains(said, "someone") && !strings.Contains(said, "hunter2"), "%v", said)
}
