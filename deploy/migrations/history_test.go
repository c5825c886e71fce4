package migrations_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// subscriptionColumns are those that subscription i, from $1 to $2, has in subscriptionRows.
const (
	subscriptionColumns = `subscriptions (store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start,
		current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, saved_card_id)`
	subscriptionRows = `SELECT 1, i, i % 54 + 1, '966', 'active', now(), now() + interval '1 day', now(), now() + interval '1 day', 'monthly',
		i, 100, 'SAR', 2, 21, i % 54 + 1 FROM generate_series($1, $2) i`
)

// ways are ways to write the subscriptions $1 to $2.
var ways = map[string]string{
	"INSERT": "INSERT INTO " + subscriptionColumns + subscriptionRows,
	"COPY":   "COPY " + subscriptionColumns + " FROM STDIN",
	"many statements": `DO $$ BEGIN FOR n IN $1 .. $2 LOOP
		INSERT INTO ` + subscriptionColumns + strings.NewReplacer("$1", "n", "$2", "n").Replace(subscriptionRows) + `; END LOOP; END $$`,
}

// load writes the subscriptions from..to in one of the ways.
func load(t testing.TB, conn *pgx.Conn, way string, from, to int) {
	t.Helper()
	numbers := strings.NewReplacer("$1", fmt.Sprint(from), "$2", fmt.Sprint(to))
	sql := numbers.Replace(ways[way])
	if way != "COPY" {
		exec(t, conn, sql)
		return
	}
	rows := texts(t, conn, `SELECT translate(trim(r::text, '()'), ',"', E'\t') FROM (`+numbers.Replace(subscriptionRows)+") r")
	_, err := conn.PgConn().CopyFrom(t.Context(), strings.NewReader(strings.Join(rows, "\n")), sql)
	assert.Require(t, err == nil, "%s: %v", sql, err)
}

// almostEmpty returns a database whose subscriptions were analyzed when there were that many, and 54 customers. They
// are not analyzed again.
func almostEmpty(t testing.TB, subscriptions int) *pgx.Conn {
	t.Helper()
	conn := dial(t, ephemeral.Migrated(t))
	exec(t, conn, aShop+`
		ALTER TABLE customers SET (autovacuum_enabled = off); ALTER TABLE saved_cards SET (autovacuum_enabled = off);
		ALTER TABLE subscriptions SET (autovacuum_enabled = off); ALTER TABLE subscription_states SET (autovacuum_enabled = off)`)
	exec(t, conn, "INSERT INTO customers (store_id, id, calling_code) SELECT 1, i, '966' FROM generate_series(1, 54) i")
	exec(t, conn, "INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) SELECT 1, i, i, '4242', 'visa' FROM generate_series(1, 54) i")
	load(t, conn, "INSERT", 1, subscriptions)
	exec(t, conn, "ANALYZE")
	return conn
}

// reads returns how many recorded rows do reads for each of n subscriptions.
func reads(t *testing.T, conn *pgx.Conn, n int, do func()) (each int) {
	t.Helper()
	sum := func() (sum int) {
		err := conn.QueryRow(t.Context(), `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_user_tables
			WHERE relname IN ('subscriptions', 'subscription_states', 'deleted_subscriptions')`).Scan(&sum)
		assert.NoError(t, err)
		return sum
	}
	exec(t, conn, "BEGIN")
	before := sum() // of transactions whose sums are not saved yet
	do()
	after := sum()
	exec(t, conn, "COMMIT")
	return (after - before) / n
}

// The plans of the triggers are made when the tables have few rows, and stay while they grow.
func TestHistories_ReadFewRowsForEachWriteWhateverWasAnalyzed(t *testing.T) {
	t.Parallel()
	for way, analyzed := range map[string]int{"INSERT": 54, "COPY": 54, "many statements": 1} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			conn, last := almostEmpty(t, analyzed), 600
			few := func(what string, do func()) {
				t.Helper()
				each := reads(t, conn, last, do)
				assert.That(t, each <= 30, "%s: %d rows were read for each subscription", what, each)
			}
			for range 6 { // from the sixth execution on, a plan is for all values
				exec(t, conn, `DELETE FROM subscriptions WHERE id = 1; UPDATE subscriptions SET price_amount = price_amount + 1 WHERE id = 2;
					UPDATE saved_cards SET scheme = scheme || 'a' WHERE id = 5; SELECT record_missed_states()`)
				load(t, conn, way, 1, 1)
			}
			few("load", func() { load(t, conn, way, analyzed+1, last) })
			for _, sql := range []string{
				"UPDATE subscriptions SET price_amount = 99", "UPDATE saved_cards SET last_four = '9999'",
				"UPDATE subscriptions SET saved_card_id = NULL WHERE id > 54", "SELECT record_missed_states()", "DELETE FROM subscriptions WHERE id > 500",
			} {
				few(sql, func() { exec(t, conn, sql) })
			}
			exec(t, conn, `ALTER TABLE subscriptions DISABLE TRIGGER _recorded; ALTER TABLE subscriptions DISABLE TRIGGER _recorded_update;
				DELETE FROM subscriptions WHERE id = 3; UPDATE subscriptions SET price_amount = 7;
				ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _recorded; ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _recorded_update`)
			few("many missed states", func() { exec(t, conn, "SELECT record_missed_states()") })
			few("the same IDs", func() { load(t, conn, way, 501, last) })
		})
	}
}

// An import says that what it inserts existed before, and no other transaction does. What it says of rows that exist is ignored.
func TestImports_AreMarked(t *testing.T) {
	t.Parallel()
	const set, paused = "SET LOCAL commerce.import = on; ", "UPDATE subscriptions SET status = 'paused', paused_at = now(), paused_remaining_days = 1"
	const trial = "status = 'trialing', trial_ends_at = now() + interval '1 day', ends_at = now() + interval '1 day'"
	for name, tc := range map[string]struct{ load, want string }{
		"no import":            {threeMore, ""},
		"no longer":            {"SAVEPOINT a; SET LOCAL commerce.import = on; ROLLBACK TO a; " + threeMore, ""},
		"off":                  {"SET LOCAL commerce.import = off; " + threeMore, ""},
		"a setting":            {set + threeMore, "4 active, 5 active, 6 active"},
		"a setting for a part": {set + threeMore + "SET LOCAL commerce.import = off; UPDATE subscriptions SET id = 8 WHERE id = 6; INSERT INTO subscriptions SELECT (jsonb_populate_record(s, '{\"id\": 9}')).* FROM subscriptions s WHERE id = 1", "4 active, 5 active, 8 active"},
		"SERIALIZABLE":         {"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; " + set + threeMore, "4 active, 5 active, 6 active"},
		"as a replica":         {"SET LOCAL session_replication_role = replica; " + set + threeMore, "4 active, 5 active, 6 active"},
		"a column, as a replica gets": {
			"CREATE TABLE copy AS TABLE subscriptions; UPDATE copy SET imported = true, id = 9 WHERE id = 1; SET LOCAL session_replication_role = replica; INSERT INTO subscriptions SELECT * FROM copy WHERE id = 9",
			"9 active",
		},
		"changed in the transaction": {set + threeMore + paused + " WHERE id IN (1, 4); UPDATE subscriptions SET " + trial + " WHERE id = 5", "4 paused, 6 active"},
		"on trial, then active":      {set + "UPDATE subscriptions SET " + trial + "; " + threeMore + "UPDATE subscriptions SET status = 'active' WHERE id > 4", "5 active, 6 active"},
		"a row that exists":          {set + "INSERT INTO subscriptions SELECT * FROM subscriptions ON CONFLICT (store_id, id) DO UPDATE SET price_amount = 7", ""},
		"all rows replaced":          {set + "CREATE TABLE copy AS TABLE subscriptions; DELETE FROM subscriptions; INSERT INTO subscriptions TABLE copy", ""},
		"a row that was deleted":     {set + "INSERT INTO subscriptions SELECT (jsonb_populate_record(s, '{\"id\": 7}')).* FROM subscriptions s WHERE id = 1", "7 active"},
		"a row that was missed":      {set + "ALTER TABLE subscriptions DISABLE TRIGGER _recorded_insert; " + threeMore + "SELECT record_missed_states()", "4 active first, 5 active first, 6 active first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, ephemeral.Migrated(t))
			inOne(t, conn, aShop, threeSubscriptions, "INSERT INTO subscriptions SELECT (jsonb_populate_record(s, '{\"id\": 7}')).* FROM subscriptions s WHERE id = 1")
			exec(t, conn, "DELETE FROM subscriptions WHERE id = 7")
			inOne(t, conn, tc.load)
			got := texts(t, conn, "SELECT concat_ws(' ', subscription_id, status, CASE WHEN first THEN 'first' END) FROM subscription_states WHERE was_bearing ORDER BY subscription_id")
			assert.Equal(t, strings.Join(got, ", "), tc.want, "states that existed before")
		})
	}
	conn := dial(t, ephemeral.Migrated(t))
	inOne(t, conn, aShop)
	_, err := conn.Exec(t.Context(), "BEGIN; SET LOCAL commerce.import = maybe; "+threeSubscriptions)
	assert.That(t, err != nil && strings.Contains(err.Error(), `boolean: "maybe"`), "a wrong setting: %v", err)
}

// busy returns how long a backend has computed, in nanoseconds. Other processes of the machine hardly change it.
func busy(t testing.TB, conn *pgx.Conn) (ns int64) {
	t.Helper()
	err := conn.QueryRow(t.Context(), "SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint").Scan(&ns)
	assert.NoError(t, err)
	return ns
}

var loadedRows = flag.Int("rows", 20_000, "how many rows BenchmarkHistories_OfALoad loads")

// Compares the CPU time of a load with and without histories: of each, the cheapest 4,000 rows of the second half.
func BenchmarkHistories_OfALoad(b *testing.B) {
	const piece = 4000
	for way := range ways {
		b.Run(way, func(b *testing.B) {
			for b.Loop() {
				with, without := almostEmpty(b, 54), almostEmpty(b, 54)
				exec(b, without, "DROP TRIGGER _recorded_insert ON subscriptions")
				least := map[*pgx.Conn]int64{}
				for from := 1000; from < *loadedRows; from += piece {
					for _, conn := range []*pgx.Conn{with, without} {
						before := busy(b, conn)
						load(b, conn, way, from, from+piece-1)
						if cost := busy(b, conn) - before; from >= *loadedRows/2 && (least[conn] == 0 || cost < least[conn]) {
							least[conn] = cost
						}
					}
				}
				b.ReportMetric(float64(least[with])/float64(least[without]), "x-without-histories")
			}
		})
	}
}
