package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func writer(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	return ephemeral.OpenPool(t, url, connect.PostgresConfig{Writable: true, StatementTimeout: -1})
}

func change(t *testing.T, db *pgxpool.Pool, sql string) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}

func count(t *testing.T, db *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	err := db.QueryRow(t.Context(), sql).Scan(&n)
	assert.Require(t, err == nil, "%s: %v", sql, err)
	return n
}

func wantCounts(t *testing.T, db *pgxpool.Pool, wanted map[string]int) {
	t.Helper()
	for sql, want := range wanted {
		assert.Equal(t, count(t, db, sql), want, "%s", sql)
	}
}

func onDatabase(t *testing.T, url string, args ...string) string {
	t.Helper()
	got := ended(t, program(t, []string{"DATABASE_URL=" + url}, args...))
	assert.Require(t, got.status == 0, "commerce %s: status %d, %s", strings.Join(args, " "), got.status, got.errors)
	return got.out
}

// A script tells a wrong setting from other failures by the status.
func TestCommands_ReportInOneLineWhatIsWrongWithTheDatabase(t *testing.T) {
	t.Parallel()
	has, empty, sharded := seeded(t), ephemeral.Postgres(t), ephemeral.Postgres(t)
	onDatabase(t, sharded, "migrate", "up", "--sharded")
	changed := func(sql string) string {
		url := ephemeral.Migrated(t)
		change(t, writer(t, url), sql)
		return url
	}
	rules := changed("ALTER TABLE products ADD CONSTRAINT product_is_not_free CHECK (price > 0)")
	old := changed("DELETE FROM goose_db_version WHERE version_id > 100")
	early := changed("UPDATE goose_db_version SET version_id = version_id - 99 WHERE version_id > 0")
	newer := changed("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)")
	const down = "postgres://commerce:hunter@127.0.0.1:1/db"
	for _, test := range []struct {
		command, database string
		status            int
		says              string // after the name of the program
	}{
		{"seed", "", 2, "DATABASE_URL: is required"},
		{"migrate up", "", 2, "DATABASE_URL: is required"},
		{"serve", "postgres://commerce:hunter/2@db", 2, "DATABASE_URL: .*percent-encoded"},
		{"migrate up", "nonsense", 2, "DATABASE_URL: .*libpq"},
		{"serve", empty, 2, "DATABASE_URL: .*version 0, want"},
		{"seed", empty, 2, "DATABASE_URL: .*run `commerce migrate up`"},
		{"serve", old, 2, "DATABASE_URL: .*run `commerce migrate up`"},
		{"serve", early, 2, "DATABASE_URL: .*before the first release"},
		{"seed", early, 2, "DATABASE_URL: .*create a new database"},
		{"migrate up", early, 2, "DATABASE_URL: .*create a new database"},
		{"migrate down", early, 2, "DATABASE_URL: .*before the first release"},
		{"migrate status", early, 2, "DATABASE_URL: .*before the first release"},
		{"migrate down", newer, 2, "DATABASE_URL: .*run a newer release"},
		{"migrate up", newer, 2, "DATABASE_URL: .*run a newer release"},
		{"migrate up", down, 1, "DATABASE_URL: .*connection refused"},
		{"migrate status", down, 1, "DATABASE_URL: .*connection refused"},
		{"seed", down, 1, "DATABASE_URL: .*connection refused"},
		{"subscriptions prune", down, 1, "DATABASE_URL: .*connection refused"},
		{"token list", down, 1, "DATABASE_URL: .*connection refused"},
		{"migrate up --service-role=nobody", empty, 2, "SERVICE_ROLE: nobody: the role does not exist: see deploy/postgres/roles.sql$"},
		{"migrate up --prune-role=nobody", empty, 2, "PRUNE_ROLE: nobody: the role does not exist"},
		{"migrate up --sharded", has, 1, ".*00102_changes.sql"},
		{"seed", rules, 1, `.*"product_is_not_free"`},
		{"subscriptions prune", sharded, 1, "nothing to prune"},
		{"serve --default-store=9", has, 2, "DEFAULT_STORE: there is no store 9$"},
		{"token store --store 99 --name x", has, 2, "--store: there is no store 99"},
		{"token store --store 0 --name x", has, 2, "--store: must be"},
		{"token store --store 1 --name=", has, 2, "--name: is required"},
		{"token store --store 1 --name=" + strings.Repeat("x", 256), has, 2, "--name: must be"},
		{"token store --store 1", has, 2, "--name: is required"},
		{"token revoke 7", has, 1, "there is no API token 7"},
		{"token revoke seven", has, 2, ".*seven"},
		{"token revoke 99999999999999999999", has, 2, ".*99999999999999999999"},
	} {
		settings := []string{"DATABASE_URL=" + test.database, "REDIS_URL=" + ephemeral.Redis(t), "JWT_SECRET=" + secret}
		got := refused(t, settings, strings.Fields(test.command))
		line, one := strings.CutSuffix(said(got.errors), "\n")
		assert.That(t, got.status == test.status && got.out == "" && one && !strings.Contains(line, "\n") &&
			regexp.MustCompile("^commerce: "+test.says).MatchString(line) && strings.Count(line, "refused") <= 1 &&
			!strings.Contains(line, "hunter"), "%.40s: %+v, want %d and %q", test.command, got, test.status, test.says)
	}
	status := onDatabase(t, empty, "migrate", "status")
	assert.That(t, !strings.Contains(status, "applied"), "a refused `migrate up` has applied migrations:\n%s", status)
}

// refused is ended for a command that the database refuses. On a busy machine, Postgres may answer too late, and serve
// starts without it: then it is started again.
func refused(t *testing.T, settings, args []string) outcome {
	t.Helper()
	for range 10 {
		cmd := program(t, settings, args...)
		var out bytes.Buffer
		cmd.Stdout = &out
		said := assert.Must(cmd.StderrPipe())(t)
		assert.NoError(t, cmd.Start())
		late := time.AfterFunc(ephemeral.Patience(time.Minute), func() { _ = cmd.Process.Kill() })
		errors, again, ends := "", false, error(nil)
		for lines := bufio.NewReader(said); ends == nil; {
			var line string
			line, ends = lines.ReadString('\n')
			errors += line
			if again = strings.Contains(errors, "starting without postgres"); again {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		if late.Stop(); !again {
			return outcome{cmd.ProcessState.ExitCode(), out.String(), errors}
		}
	}
	t.Fatalf("%v: Postgres answers too late", args)
	return outcome{}
}

func TestCommands_FailIfTheirOutputCannotBeWritten(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	for _, line := range []string{"--help", "help serve", "version", "migrate status", "seed", "subscriptions prune", "token list"} {
		full := assert.Must(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
		defer full.Close()
		cmd, errors := program(t, []string{"DATABASE_URL=" + url}, strings.Split(line, " ")...), &strings.Builder{}
		cmd.Stdout, cmd.Stderr = full, errors
		err := cmd.Run()
		assert.That(t, cmd.ProcessState.ExitCode() == 1 && strings.Contains(errors.String(), "no space left"),
			"%s: %v, %s", line, err, errors)
	}
}

// The next release has added to the database what this one does not know, and may not read.
func TestServe_StartsAndServesOnTheSchemaOfTheNextRelease(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	token := storeToken(t, url)
	_, asRole := newRole(t, url, "--service-role=")
	before := startServe(t, asRole)
	before.wantStatuses(t, token, healthy())
	change(t, writer(t, url), `
		ALTER TABLE products ADD COLUMN later text NOT NULL DEFAULT 'x';
		ALTER TABLE subscriptions ADD COLUMN later text NOT NULL DEFAULT 'x';
		CREATE TABLE later (id bigint PRIMARY KEY);
		CREATE INDEX later_subscriptions ON subscriptions (store_id, later, id);
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	for _, r := range []*running{before, startServe(t, asRole)} {
		r.wantStatuses(t, token, healthy())
		for _, path := range []string{"/subscriptions/5001", "/subscriptions/5001/history", "/subscriptions/summary", "/subscriptions/metrics", "/subscriptions/changes", "/subscriptions/events", "/subscriptions?status=active"} {
			status, _ := r.asStoreServed(t, token, path)
			assert.That(t, status == http.StatusOK, "%s: %d", path, status)
		}
		r.end(t)
	}
}

// newRole returns a role with the rights of a flag of migrate up, and its URL.
func newRole(t *testing.T, url, flag string) (role, asRole string) {
	t.Helper()
	role = fmt.Sprintf("granted_%d", time.Now().UnixNano()) // roles belong to all databases
	change(t, writer(t, url), "CREATE ROLE "+role+" LOGIN")
	onDatabase(t, url, "migrate", "up", flag+role)
	return role, strings.Replace(url, "//postgres@", "//"+role+"@", 1)
}

func TestServe_TellsMissingRightsAndAnOlderSchemaFromAnOutage(t *testing.T) {
	t.Parallel()
	url := seeded(t)
	role, asRole := newRole(t, url, "--service-role=")
	change(t, writer(t, url), "CREATE TABLE anothers ()") // which the role cannot read
	serve := startServe(t, asRole)
	states := func(postgres, rights, schema string) map[string]string {
		return map[string]string{"redis": "ok", "postgres": postgres, "postgres_rights": rights, "postgres_schema": schema}
	}
	healthy := func() {
		t.Helper()
		serve.wantChecks(t, http.StatusOK, states("ok", "ok", "ok"))
		serve.wantUp(t, 1, 1, 1)
	}
	healthy()

	change(t, writer(t, url), "REVOKE SELECT ON coupon_uses FROM "+role)
	serve.wantChecks(t, http.StatusOK, states("ok", "failing", "unknown"))
	serve.wantUp(t, 1, 0, 1)
	startServe(t, asRole).wantChecks(t, http.StatusServiceUnavailable, states("ok", "refused", "unknown"))
	onDatabase(t, url, "migrate", "up", "--service-role="+role)
	healthy()

	change(t, writer(t, url), "UPDATE goose_db_version SET version_id = -version_id WHERE version_id > 100")
	serve.wantChecks(t, http.StatusOK, states("ok", "ok", "failing"))
	serve.wantUp(t, 1, 1, 0)
	change(t, writer(t, url), "UPDATE goose_db_version SET version_id = abs(version_id)")
	healthy()
	assert.That(t, !strings.Contains(serve.log.String(), `"lost postgres"`), "the log says:\n%s", serve.log)
	for _, said := range []string{`"lost postgres_rights"`, "coupon_uses: the role lacks", `"lost postgres_schema"`} {
		assert.That(t, strings.Contains(serve.log.String(), said), "the log lacks %s:\n%s", said, serve.log)
	}
}

// wantUp waits until commerce_dependency_up has these values for Postgres, the rights and the schema.
func (r *running) wantUp(t *testing.T, want ...float64) {
	t.Helper()
	eventually(t, func() string {
		var up []float64
		for _, name := range []string{"postgres", "postgres_rights", "postgres_schema"} {
			up = append(up, r.metric(t, `commerce_dependency_up{dependency="`+name+`"}`))
		}
		return cmp.Diff(want, up)
	})
}

func TestMigrate_PrintsWhatItDid(t *testing.T) {
	t.Parallel()
	url := ephemeral.Postgres(t)
	for _, step := range []struct{ command, says string }{
		{"down", "nothing to do"},
		{"status", "pending  00100_catalog.sql"},
		{"up", "applied 00100_catalog.sql"},
		{"up", "nothing to do"},
		{"up --service-role=pg_monitor", "granted the service's rights to pg_monitor"},
		{"status", "applied  00100_catalog.sql"},
		{"down", "rolled back 001"},
		{"up", "applied 001"},
	} {
		out := onDatabase(t, url, append([]string{"migrate"}, strings.Fields(step.command)...)...)
		assert.That(t, strings.Contains(out, step.says), "migrate %s says %q, want %q", step.command, out, step.says)
	}
}

func TestSeed_CanBeRepeatedAndRunConcurrently(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			got := ended(t, program(t, []string{"DATABASE_URL=" + url}, "seed"))
			assert.That(t, got.status == 0, "seed: status %d, %s", got.status, got.errors)
		})
	}
	both.Wait()
	db := writer(t, url)
	const rows = ` FROM ( -- xmin: the transaction that last wrote a row
		SELECT xmin FROM products UNION ALL SELECT xmin FROM plans
		UNION ALL SELECT xmin FROM fields UNION ALL SELECT xmin FROM field_options) rows`
	before := map[string]int{"SELECT count(*)" + rows: 0, "SELECT sum(xmin::text::bigint)" + rows: 0}
	for sql := range before {
		before[sql] = count(t, db, sql)
	}
	onDatabase(t, url, "seed")
	wantCounts(t, db, before) // no change
	change(t, db, "UPDATE products SET price = 1 WHERE id = 1")
	change(t, db, "UPDATE plans SET price = 1 WHERE id = 41")
	onDatabase(t, url, "seed")
	wantCounts(t, db, map[string]int{"SELECT price FROM products WHERE id = 1": 4950, "SELECT price FROM plans WHERE id = 41": 2000})
}

// Everything but changes works with the schema that Citus can shard.
func TestSharded_ServesEverythingButChanges(t *testing.T) {
	t.Parallel()
	url := ephemeral.Postgres(t)
	up := codeUnder(t, source(t, "docs/scale.md"), "Citus", "sh")[0]
	up, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(up), "commerce "), "\n")
	for _, step := range []struct{ command, says string }{
		{up, "applied 00103_sharding.sql"},
		{up, "nothing to do"},
		{"migrate up", "nothing to do"},
		{"migrate status", "left out 00102_changes.sql"},
		{"seed --subscriptions 500", "500"},
	} {
		out := onDatabase(t, url, strings.Fields(step.command)...)
		assert.That(t, strings.Contains(out, step.says), "%s says %q, want %q", step.command, out, step.says)
	}
	r := startServe(t, url)
	token := storeToken(t, url)
	r.wantStatuses(t, token, healthy())
	for path, want := range map[string]int{
		"/subscriptions/5001":                                  http.StatusOK,
		"/subscriptions/summary":                               http.StatusOK,
		"/subscriptions?status=active&customerCountryCode=966": http.StatusOK,
		"/subscriptions/changes":                               http.StatusNotFound,
		"/subscriptions/events":                                http.StatusNotFound,
		"/subscriptions/5001/history":                          http.StatusNotFound,
		"/subscriptions/metrics":                               http.StatusNotFound,
	} {
		r.wantStatus(t, token, path, want)
	}
	r.end(t)
}

// Everything that reads Postgres does so behind a pooler with its default settings, with many connections at once.
func TestServe_WorksBehindAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "session"} {
		url := seeded(t)
		token, guest := storeToken(t, url), "guest-behind-a-pooler-in-"+mode
		r := startServe(t, ephemeral.Pooler(t, url, mode))
		r.wantStatuses(t, token, healthy())
		r.mustCall(t, guest, "POST", "/cart/add", `{"product_id":1}`)
		r.mustCall(t, guest, "POST", "/cart/coupon", `{"coupon":"TEN"}`)
		var all sync.WaitGroup
		for i := range 120 {
			path := []string{"", "/5001", "/summary", "/changes", "/5001/history", "/metrics", "?customerCountryCode=966"}[i%7]
			all.Go(func() { r.wantStatus(t, token, "/subscriptions"+path, http.StatusOK) })
		}
		all.Wait()
		r.end(t)
		assert.That(t, !strings.Contains(r.log.String(), "SQLSTATE"), "%s: the log has an error of Postgres:\n%s", mode, r.log.String())
		wantCounts(t, writer(t, url), map[string]int{"SELECT count(*) FROM api_tokens WHERE last_used_at IS NOT NULL": 1})
	}
}

// Citus cannot run a plan that was made without the values of its parameters.
func TestSubscriptions_PlanAsDatabaseURLSays(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	for parameters, want := range map[string]string{"": "force_generic_plan", "&plan_cache_mode=force_custom_plan": "force_custom_plan"} {
		var mode string
		err := ephemeral.OpenPool(t, url+parameters, listPool("")).QueryRow(t.Context(), "SHOW plan_cache_mode").Scan(&mode)
		assert.That(t, err == nil && mode == want, "with %q: %s, %v, want %s", parameters, mode, err, want)
	}
}
