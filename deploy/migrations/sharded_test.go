package migrations_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

// sharded returns a database of UpSharded.
func sharded(t *testing.T) (*pgx.Conn, *migrations.Migrator) {
	t.Helper()
	url := ephemeral.Postgres(t)
	conn, m := dial(t, url), open(t, url)
	assert.Must(m.UpSharded(t.Context()))(t)
	return conn, m
}

// script returns a file of deploy/postgres.
func script(t *testing.T, name string) string {
	t.Helper()
	return string(assert.Must(os.ReadFile("../postgres/" + name))(t))
}

// sharding is what deploy/postgres/citus.sql does with each table, in its order.
type sharding struct {
	distributed, reference []string
	place                  map[string]int
	colocated              map[string]string // the table that a distributed one is with; "none" for the first
}

var shardingCall = regexp.MustCompile(`(?m)^SELECT create_(distributed|reference)_table\('(\w+)'(?:, 'store_id', colocate_with => '(\w+)'[^)]*)?\);$`)

func readSharding(t *testing.T) sharding {
	t.Helper()
	text := script(t, "citus.sql")
	s := sharding{place: map[string]int{}, colocated: map[string]string{}}
	calls := shardingCall.FindAllStringSubmatch(text, -1)
	assert.Equal(t, len(calls), strings.Count(text, "SELECT "), "statements of citus.sql that this test understands")
	for i, call := range calls {
		s.place[call[2]] = i
		if call[1] == "reference" {
			s.reference = append(s.reference, call[2])
		} else {
			s.distributed = append(s.distributed, call[2])
			s.colocated[call[2]] = call[3]
		}
	}
	return s
}

// The transaction of citus.sql creates tables whose foreign keys reference each other and tables that
// are copied. Citus distributes these only with two settings.
func TestSharded_SetsWhatCitusNeedsToDistributeTablesWithForeignKeys(t *testing.T) {
	t.Parallel()
	text := script(t, "citus.sql")
	before, _, _ := strings.Cut(text, "\nSELECT ")
	for _, setting := range []string{
		"\nSET citus.enable_local_reference_table_foreign_keys = off;\n",
		"\nSET citus.multi_shard_modify_mode = 'sequential';\n",
	} {
		assert.That(t, strings.Contains(before, setting), "no%sbefore the first table", setting)
	}
}

// texts returns the rows of a query with one column of text.
func texts(t testing.TB, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	rows, _ := conn.Query(t.Context(), sql, args...) // an error is that of the rows
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	assert.Require(t, err == nil, "%s: %v", sql, err)
	return all
}

// refusals lists what Citus refuses of the tables, as it documents or as its source checks.
func (s sharding) refusals(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var refused []string
	add := func(rule string, found []string) {
		for _, f := range found {
			refused = append(refused, f+": "+rule)
		}
	}
	// Only commerce migrate uses goose_db_version, on the coordinator.
	add("is neither distributed nor a reference table", texts(t, conn, `
		SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
			AND relname <> 'goose_db_version' AND relname <> ALL($1) ORDER BY 1`, slices.Concat(s.distributed, s.reference)))
	add("has a trigger", texts(t, conn, `
		SELECT tgrelid::regclass || ' ' || tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1`))
	add("a primary or unique key or an exclusion without store_id", texts(t, conn, `
		SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid::regclass::text = ANY($1) AND (indisunique OR indisexclusion)
			AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = indrelid AND attname = 'store_id' AND attnum = ANY(indkey::int2[]))
		ORDER BY 1`, s.distributed))
	add("store_id may be null", texts(t, conn, `
		SELECT attrelid::regclass::text FROM pg_attribute WHERE attrelid::regclass::text = ANY($1) AND attname = 'store_id' AND NOT attnotnull ORDER BY 1`, s.distributed))
	add("has no store_id that can distribute it", texts(t, conn, `
		SELECT name FROM unnest($1::text[]) name WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(name)
			AND attname = 'store_id' AND atttypid = 'bigint'::regtype AND attgenerated = '') ORDER BY 1`, s.distributed))

	const foreignKeys = `
		WITH keys AS (
			SELECT conname, conrelid::regclass::text AS from_table, confrelid::regclass::text AS to_table, confdeltype, confupdtype,
				coalesce(array_position(conkey, (SELECT attnum FROM pg_attribute WHERE attrelid = conrelid AND attname = 'store_id')), -1) AS own,
				coalesce(array_position(confkey, (SELECT attnum FROM pg_attribute WHERE attrelid = confrelid AND attname = 'store_id')), -2) AS other
			FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace
		)
		SELECT conname FROM keys WHERE `
	add("a foreign key from a reference table to a distributed one", texts(t, conn, foreignKeys+
		`from_table = ANY($1) AND to_table = ANY($2) ORDER BY 1`, s.reference, s.distributed))
	add("a foreign key between distributed tables without store_id at the same place", texts(t, conn, foreignKeys+
		`from_table = ANY($1) AND to_table = ANY($1) AND own <> other ORDER BY 1`, s.distributed))
	// Citus refuses SET NULL and SET DEFAULT even for a list of columns without store_id.
	add("a foreign key with store_id has an action that writes its columns", texts(t, conn, foreignKeys+
		`from_table = ANY($1) AND own > 0 AND (confdeltype IN ('n', 'd') OR confupdtype IN ('c', 'n', 'd')) ORDER BY 1`, s.distributed))
	for _, key := range texts(t, conn, `SELECT conrelid::regclass || ' ' || confrelid::regclass FROM pg_constraint
		WHERE contype = 'f' AND connamespace = 'public'::regnamespace ORDER BY 1`) {
		from, to, _ := strings.Cut(key, " ")
		if s.place[from] < s.place[to] {
			refused = append(refused, from+": comes before "+to+", which it references")
		}
	}
	for _, table := range s.distributed[1:] {
		if s.colocated[table] != s.distributed[0] {
			refused = append(refused, table+": is not with "+s.distributed[0])
		}
	}
	return refused
}

func TestSharded_FollowsTheRulesOfCitus(t *testing.T) {
	t.Parallel()
	conn, _ := sharded(t)
	s := readSharding(t)
	assert.Equal(t, s.refusals(t, conn), nil, "refused")
	for _, table := range slices.Concat(s.distributed, s.reference) {
		exec(t, conn, "SELECT FROM "+table+" LIMIT 0")
	}
}

// The rules of the test above would find what breaks them.
func TestSharded_RulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	conn, _ := sharded(t)
	s := readSharding(t)
	for broken, want := range map[string]string{
		`CREATE TABLE orders (store_id bigint PRIMARY KEY)`:                                                                                             "orders: is neither distributed nor a reference table",
		`CREATE UNIQUE INDEX by_hash ON customers (email)`:                                                                                              "by_hash: a primary or unique key or an exclusion without store_id",
		`ALTER TABLE coupon_uses ALTER store_id DROP NOT NULL`:                                                                                          "coupon_uses: store_id may be null",
		`CREATE TRIGGER t AFTER INSERT ON customers EXECUTE FUNCTION store_changed()`:                                                                   "customers t: has a trigger",
		`CREATE TRIGGER t AFTER INSERT ON stores EXECUTE FUNCTION store_changed()`:                                                                      "stores t: has a trigger",
		`ALTER TABLE plans ADD UNIQUE (id, store_id, duration), ADD CONSTRAINT f FOREIGN KEY (store_id) REFERENCES stores ON UPDATE CASCADE`:            "f: a foreign key with store_id has an action that writes its columns",
		`ALTER TABLE saved_cards ADD CONSTRAINT f FOREIGN KEY (store_id, customer_id) REFERENCES customers ON DELETE SET NULL (customer_id)`:            "f: a foreign key with store_id has an action that writes its columns",
		`ALTER TABLE stores ADD plan bigint, ADD CONSTRAINT f FOREIGN KEY (id, plan) REFERENCES plans`:                                                  "f: a foreign key from a reference table to a distributed one",
		`ALTER TABLE plans ADD CONSTRAINT u UNIQUE (id, store_id), ADD CONSTRAINT f FOREIGN KEY (store_id, product_id) REFERENCES plans (id, store_id)`: "f: a foreign key between distributed tables without store_id at the same place",
	} {
		exec(t, conn, "BEGIN; "+broken)
		got := s.refusals(t, conn)
		assert.That(t, slices.Contains(got, want), "%s: found %q, want %q", broken, got, want)
		exec(t, conn, "ROLLBACK")
	}
	got := s.refusals(t, dial(t, ephemeral.Migrated(t)))
	assert.That(t, len(got) >= 20, "of the schema with all migrations it found only %q", got)
}

func TestSharded_CanBeRolledBackAndRepeated(t *testing.T) {
	t.Parallel()
	conn, m := sharded(t)
	again, err := m.Up(t.Context()) // as every later release
	assert.Require(t, err == nil && len(again.Applied) == 0 && !again.Restarted, "a further Up: %+v, %v", again, err)
	assert.Succeeds(t, migrations.Check(t.Context(), conn), "Check")
	for _, s := range assert.Must(m.Status(t.Context()))(t) {
		assert.That(t, s.LeftOut != s.Applied && s.LeftOut == (s.Version == 102), "status %+v", s)
	}
	downAndUp(t, conn, m, m.UpSharded)
}

// definitions lists the constraints, indexes and triggers of all tables.
func definitions(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return texts(t, conn, `
		SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
		UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE relnamespace = 'public'::regnamespace
		ORDER BY 1`)
}

// A database may leave out the changes and get them later, and the other way round.
func TestSharded_IsTheSameSchemaAfterItIsRolledBack(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	exec(t, conn, aShop)
	want := definitions(t, conn)
	_, err := m.UpSharded(t.Context())
	assert.That(t, errors.Is(err, migrations.ErrHasChanges), "UpSharded of a database with changes: %v", err)
	downTo(t, m, 101)
	assert.Must(m.UpSharded(t.Context()))(t)
	assert.Equal(t, readSharding(t).refusals(t, conn), nil, "refused after it was sharded")
	downTo(t, m, 101)
	assert.Must(m.Up(t.Context()))(t)
	assert.Equal(t, definitions(t, conn), want, "after it was sharded and rolled back (-before +after)")
}

// What the platform does itself in a sharded database, as docs/scale.md shows it.
func TestSharded_PlatformChangesCopiesItself(t *testing.T) {
	t.Parallel()
	conn, _ := sharded(t)
	inOne(t, conn, aShop, threeSubscriptions)
	inOne(t, conn, "UPDATE customers SET calling_code = '971' WHERE store_id = 1 AND id = 7",
		"UPDATE subscriptions SET calling_code = '971' WHERE store_id = 1 AND customer_id = 7")
	inOne(t, conn, "UPDATE subscriptions SET saved_card_id = NULL WHERE store_id = 1 AND customer_id = 7 AND saved_card_id = 4",
		"DELETE FROM saved_cards WHERE store_id = 1 AND id = 4")
	_, err := conn.Exec(t.Context(), "UPDATE customers SET calling_code = '966' WHERE store_id = 1 AND id = 7")
	assert.That(t, err != nil, "a customer got another calling code than the copies")
}

// Postgres asks for rights on the partitioned table, and not on its partitions.
func TestCheck_AsksForTheRightsThatAPartitionedTableNeeds(t *testing.T) {
	t.Parallel()
	conn := dial(t, ephemeral.Migrated(t))
	reader := newRole("partition_reader")
	exec(t, conn, "CREATE ROLE "+reader+"; GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+reader)
	exec(t, conn, "BEGIN; "+script(t, "partitions.sql")+" COMMIT; SET ROLE "+reader)
	err := migrations.Check(t.Context(), conn)
	assert.ErrorIs(t, err, migrations.ErrRights, "without rights on subscriptions")
	assert.That(t, strings.HasPrefix(fmt.Sprint(err), "subscriptions: "), "without rights on subscriptions: %v", err)
	exec(t, conn, "RESET ROLE; GRANT SELECT ON subscriptions TO "+reader+"; SET ROLE "+reader)
	assert.Succeeds(t, migrations.Check(t.Context(), conn), "with rights on subscriptions alone")
	exec(t, conn, "SELECT FROM subscriptions")
}
