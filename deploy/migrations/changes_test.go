package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/deploy/migrations"
)

// threeSubscriptions adds a customer with a card and subscriptions 1, 2 and 3 to aShop. The
// card pays subscriptions 1 and 2.
const threeSubscriptions = `
	INSERT INTO customers (store_id, id, calling_code) VALUES (1, 7, '966');
	INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) VALUES (1, 4, 7, '4242', 'visa');
	INSERT INTO subscriptions (store_id, id, customer_id, calling_code, status, starts_at, ends_at, current_period_start,
			current_period_end, duration, order_id, price_amount, currency, product_id, variant_id, saved_card_id)
		SELECT 1, i, 7, '966', 'active', now(), now() + interval '1 day', now(), now() + interval '1 day', 'monthly', i, 100, 'SAR', 2, 21, CASE WHEN i < 3 THEN 4 END
		FROM generate_series(1, 3) i;`

// threeMore adds subscriptions 4, 5 and 6, which are like the first.
const threeMore = `INSERT INTO subscriptions SELECT (jsonb_populate_record(s, jsonb_build_object('id', i))).*
	FROM subscriptions s, generate_series(4, 6) i WHERE s.id = 1;`

// inOne runs statements in one transaction and returns its ID.
func inOne(t *testing.T, conn *pgx.Conn, statements ...string) (transaction uint64) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(t.Context(), s); err != nil {
				return err
			}
		}
		return tx.QueryRow(t.Context(), "SELECT pg_current_xact_id()").Scan(&transaction)
	})
	assert.Require(t, err == nil, "%s: %v", statements, err)
	return transaction
}

// changedIn returns the rows of subscriptions, or those that were deleted, by transaction.
func changedIn(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return strings.Join(texts(t, conn, `SELECT concat_ws(' ', id, kind, at) FROM (
		SELECT id, NULL AS kind, changed_in AS at FROM subscriptions
		UNION ALL SELECT id, 'deleted', deleted_in FROM deleted_subscriptions) r ORDER BY id, kind NULLS FIRST`), ", ")
}

func TestChanges_AreStampedWithTheirTransaction(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change string
		want   string // B: the transaction before, T: that of the change
		states string // that the change recorded
	}{
		"update":                      {"UPDATE subscriptions SET order_id = 9 WHERE id = 2", "1 B, 2 T, 3 B", ""},
		"update of nothing":           {"UPDATE subscriptions SET order_id = order_id WHERE id = 2", "1 B, 2 T, 3 B", ""},
		"a stamp of the writer's own": {"UPDATE subscriptions SET changed_in = '1' WHERE id = 2", "1 B, 2 T, 3 B", ""},
		"what a history shows": {
			"UPDATE subscriptions SET status = 'expired', cancel_at_period_end = true, price_amount = 7 WHERE id = 2", "1 B, 2 T, 3 B", "2 expired 7 t",
		},
		"each of its columns": {
			`UPDATE subscriptions SET currency = 'USD' WHERE id = 1; UPDATE subscriptions SET duration = 'annually' WHERE id = 1;
			UPDATE subscriptions SET current_period_end = now() + interval '1 month' WHERE id = 1; UPDATE subscriptions SET current_period_start = '2020-01-01' WHERE id = 1;
			UPDATE subscriptions SET cancel_at_period_end = true WHERE id = 1; UPDATE subscriptions SET price_amount = 1 WHERE id = 1;
			INSERT INTO plans (store_id, id, product_id, duration, price) VALUES (1, 22, 2, 'annually', 900); UPDATE subscriptions SET variant_id = 22 WHERE id = 1`,
			"1 T, 2 B, 3 B", "1 active 1 t",
		},
		"delete":                        {"DELETE FROM subscriptions WHERE id = 2", "1 B, 2 deleted T, 3 B", "2 deleted"},
		"another ID":                    {"UPDATE subscriptions SET id = 5 WHERE id = 2", "1 B, 2 deleted T, 3 B, 5 T", "2 deleted, 5 active 100 f 4242 visa"},
		"truncate":                      {"TRUNCATE subscriptions", "1 deleted T, 2 deleted T, 3 deleted T", "1 deleted, 2 deleted, 3 deleted"},
		"truncate of what it refers to": {"TRUNCATE customers CASCADE", "1 deleted T, 2 deleted T, 3 deleted T", "1 deleted, 2 deleted, 3 deleted"},
		"another card":                  {"UPDATE saved_cards SET last_four = '1111'", "1 T, 2 T, 3 B", "1 active 100 f 1111 visa, 2 active 100 f 1111 visa"},
		"the same card":                 {"UPDATE saved_cards SET last_four = '4242'", "1 B, 2 B, 3 B", ""},
		"a card that looks the same": {
			"INSERT INTO saved_cards (store_id, id, customer_id, last_four, scheme) VALUES (1, 5, 7, '4242', 'visa'); UPDATE subscriptions SET saved_card_id = 5 WHERE id < 3", "1 T, 2 T, 3 B", "",
		},
		"a card and the status":         {"UPDATE subscriptions SET saved_card_id = 4, status = 'expired' WHERE id > 1", "1 B, 2 T, 3 T", "2 expired 100 f, 3 expired 100 f 4242 visa"},
		"a card that is removed":        {"DELETE FROM saved_cards", "1 T, 2 T, 3 B", "1 active 100 f  , 2 active 100 f  "},
		"a calling code":                {"UPDATE customers SET calling_code = '971'", "1 T, 2 T, 3 T", ""},
		"a product, which is not shown": {"UPDATE products SET name = 'New'", "1 B, 2 B, 3 B", ""},
		"a replacement": {
			"CREATE TABLE copy AS TABLE subscriptions; DELETE FROM subscriptions WHERE id < 3; INSERT INTO subscriptions SELECT * FROM copy WHERE id = 1",
			"1 T, 1 deleted T, 2 deleted T, 3 B", "2 deleted",
		},
		"rows that are loaded from a dump after their states": {
			`CREATE TABLE rows AS TABLE subscriptions; CREATE TABLE states AS TABLE subscription_states; TRUNCATE subscriptions, subscription_states;
			INSERT INTO subscription_states OVERRIDING SYSTEM VALUE TABLE states; INSERT INTO subscriptions TABLE rows`,
			"1 T, 1 deleted T, 2 T, 2 deleted T, 3 T, 3 deleted T", "",
		},
		"a trigger of the platform that changes the row again": {
			`CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF TG_OP = 'DELETE' THEN INSERT INTO subscriptions SELECT OLD.*; ELSIF NEW.price_amount = 7 THEN UPDATE subscriptions SET price_amount = 8 WHERE id = NEW.id; END IF;
				RETURN NULL; END $$; CREATE TRIGGER again AFTER UPDATE OR DELETE ON subscriptions FOR EACH ROW EXECUTE FUNCTION again();
			UPDATE subscriptions SET price_amount = 7 WHERE id = 2; DELETE FROM subscriptions WHERE id = 1`,
			"1 T, 1 deleted T, 2 T, 3 B", "2 active 8 f",
		},
		"there and back": {
			"UPDATE subscriptions SET status = 'expired'; UPDATE subscriptions SET status = 'active', price_amount = 7 WHERE id < 3; UPDATE subscriptions SET price_amount = 100 WHERE id = 2",
			"1 T, 2 T, 3 T", "1 active 7 f, 3 expired 100 f",
		},
		"there and back, in savepoints": {
			"SAVEPOINT a; UPDATE subscriptions SET status = 'expired'; RELEASE a; SAVEPOINT b; UPDATE subscriptions SET status = 'active'; SAVEPOINT c; UPDATE subscriptions SET price_amount = 7; ROLLBACK TO c",
			"1 T, 2 T, 3 T", "",
		},
		"there and back, with another card meanwhile": {
			`UPDATE subscriptions SET saved_card_id = NULL WHERE id = 1; UPDATE subscriptions SET price_amount = 7 WHERE id < 3; UPDATE saved_cards SET last_four = '1111';
			UPDATE subscriptions SET price_amount = 100 WHERE id < 3`,
			"1 T, 2 T, 3 B", "1 active 100 f  , 2 active 100 f 1111 visa",
		},
		"digits, and back": {
			"UPDATE subscriptions SET price_amount = 7 WHERE id = 2; UPDATE saved_cards SET last_four = '1111'; UPDATE saved_cards SET last_four = '4242'", "1 T, 2 T, 3 B", "2 active 7 f 4242 visa",
		},
		"a new one that is changed or deleted": {
			threeMore + `UPDATE subscriptions SET price_amount = 7 WHERE id = 5; UPDATE subscriptions SET price_amount = 8 WHERE id = 5; DELETE FROM subscriptions WHERE id = 6`,
			"1 B, 2 B, 3 B, 4 T, 5 T, 6 deleted T", "4 active 100 f 4242 visa, 5 active 8 f 4242 visa",
		},
		"there and back, SERIALIZABLE": {
			`SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; UPDATE subscriptions SET status = 'expired'; UPDATE subscriptions SET status = 'active' WHERE id > 1;
			CREATE TABLE copy AS TABLE subscriptions; DELETE FROM subscriptions WHERE id = 2; INSERT INTO subscriptions SELECT * FROM copy WHERE id = 2`,
			"1 T, 2 T, 2 deleted T, 3 T", "1 expired 100 f",
		},
		"an ID, and back": {"UPDATE subscriptions SET id = 5 WHERE id = 2; UPDATE subscriptions SET id = 2 WHERE id = 5", "1 B, 2 T, 2 deleted T, 3 B, 5 deleted T", ""},
		"all rows replaced": {
			"CREATE TABLE copy AS TABLE subscriptions; UPDATE subscriptions SET price_amount = 7; TRUNCATE subscriptions; INSERT INTO subscriptions SELECT * FROM copy WHERE id < 3",
			"1 T, 1 deleted T, 2 T, 2 deleted T, 3 deleted T", "1 active 100 f 4242 visa, 2 active 100 f 4242 visa, 3 deleted",
		},
		"as a subscriber of logical replication": {
			"SET LOCAL session_replication_role = replica; UPDATE subscriptions SET status = 'expired' WHERE id = 2; DELETE FROM subscriptions WHERE id = 1; UPDATE saved_cards SET scheme = 'mada'",
			"1 deleted T, 2 T, 3 B", "1 deleted, 2 expired 100 f 4242 mada",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, ephemeral.Migrated(t))
			before := inOne(t, conn, aShop, threeSubscriptions)
			exec(t, conn, "UPDATE subscription_states SET first = true") // those of before
			change := inOne(t, conn, tc.change)
			states := texts(t, conn, `SELECT concat_ws(' ', subscription_id, coalesce(status, 'deleted'), price_amount, cancel_at_period_end, card_last_four, card_scheme)
				FROM subscription_states WHERE NOT first ORDER BY subscription_id, number`)
			assert.Equal(t, strings.Join(states, ", "), tc.states, "recorded states")
			withCard := texts(t, conn, `SELECT s.subscription_id::text FROM subscription_states s JOIN subscription_states d
				ON d.subscription_id = s.subscription_id AND d.status IS NULL AND d.number > s.number WHERE s.card_last_four IS NOT NULL`)
			assert.Equal(t, len(withCard), 0, "deleted subscriptions with a card")
			want := strings.NewReplacer("B", strconv.FormatUint(before, 10), "T", strconv.FormatUint(change, 10)).Replace(tc.want)
			assert.Equal(t, changedIn(t, conn), want, "changedIn(t, conn)")
		})
	}
}

func TestChanges_OfATransactionThatIsRolledBackLeaveNothing(t *testing.T) {
	t.Parallel()
	conn := dial(t, ephemeral.Migrated(t))
	inOne(t, conn, aShop, threeSubscriptions)
	before := changedIn(t, conn)
	exec(t, conn, "BEGIN; UPDATE subscriptions SET order_id = 9; DELETE FROM subscriptions WHERE id = 1; ROLLBACK")
	inOne(t, conn, "SAVEPOINT s", "DELETE FROM subscriptions", "ROLLBACK TO s")
	assert.Equal(t, changedIn(t, conn), before, "(-before +after)")
}

// A platform's role needs no rights on the tables of the changes, and cannot redirect the
// triggers to tables of its own.
func TestChanges_NeedOnlyTheRightsOfTheWriter(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	downTo(t, m, 101)
	exec(t, conn, "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
	assert.Must(m.Up(t.Context()))(t)
	inOne(t, conn, aShop, threeSubscriptions)
	exec(t, conn, `
		BEGIN;
		CREATE ROLE changes_test_writer;
		GRANT SELECT, INSERT, UPDATE, DELETE ON subscriptions, saved_cards, api_tokens TO changes_test_writer;
		SET LOCAL ROLE changes_test_writer;
		CREATE TEMP TABLE deleted_subscriptions (store_id bigint, id bigint, deleted_in xid8, deleted_at timestamptz, PRIMARY KEY (store_id, id));
		CREATE TEMP TABLE subscription_states (store_id bigint);
		SET LOCAL search_path = pg_temp, public;
		UPDATE subscriptions SET order_id = 9, status = 'expired' WHERE id = 1;
		UPDATE subscriptions SET saved_card_id = NULL WHERE id = 1;
		DELETE FROM subscriptions WHERE id = 3;
		UPDATE saved_cards SET last_four = '1111';
		UPDATE api_tokens SET last_used_at = now();
		RESET ROLE;
		DROP TABLE pg_temp.deleted_subscriptions, pg_temp.subscription_states;
		DROP OWNED BY changes_test_writer;
		DROP ROLE changes_test_writer;
		COMMIT`)
	assert.That(t, strings.Contains(changedIn(t, conn), "3 deleted"), "%s", changedIn(t, conn))
}

// With a trigger on a table of its own, any role could forge changes.
func TestChanges_CannotBeForged(t *testing.T) {
	t.Parallel()
	conn := dial(t, ephemeral.Migrated(t))
	for _, name := range texts(t, conn, `SELECT proname::text FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
		AND prosecdef AND prorettype = 'trigger'::regtype AND has_function_privilege('pg_monitor', oid, 'EXECUTE')`) {
		t.Errorf("any role may create triggers with %s", name)
	}
}

// Above READ COMMITTED, a transaction does not see the digits that a card has got since its snapshot.
func TestChanges_RecordNoDigitsOfAnOlderSnapshot(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, writer := dial(t, url), dial(t, url)
	inOne(t, conn, aShop, threeSubscriptions, "UPDATE subscriptions SET saved_card_id = NULL")
	const give = "UPDATE subscriptions SET saved_card_id = 4 WHERE id = 3"
	exec(t, writer, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM saved_cards")
	exec(t, conn, "UPDATE saved_cards SET last_four = '1111'")
	_, err := writer.Exec(t.Context(), give)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	assert.Require(t, ok && refused.Code == "40001", "%s: %v", give, err)
	exec(t, writer, "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; "+give+"; COMMIT")
	got := texts(t, conn, "SELECT card_last_four FROM subscription_states WHERE subscription_id = 3 ORDER BY number DESC LIMIT 1")
	assert.Equal(t, got[0], "1111", "recorded digits")
}

// Above READ COMMITTED, a transaction sees states of a subscription that others have deleted since its snapshot. What
// it inserts then, or gives this ID, is recorded, whatever it deletes besides. Postgres refuses to update it.
func TestChanges_RecordInsertsWhateverAnOlderSnapshotSees(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string][]string{
		"delete another": {"DELETE FROM subscriptions WHERE id = 2", "INSERT INTO subscriptions SELECT * FROM kept"},
		"update another, too": {
			"UPDATE subscriptions SET order_id = 7 WHERE id = 2", "DELETE FROM subscriptions WHERE id = 2", "INSERT INTO subscriptions SELECT * FROM kept",
		},
		"move another that is alike": {"UPDATE subscriptions SET id = 1 WHERE id = 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := ephemeral.Migrated(t)
			conn, writer := dial(t, url), dial(t, url)
			inOne(t, conn, aShop, threeSubscriptions, "CREATE TABLE kept AS SELECT * FROM subscriptions WHERE id = 1")
			exec(t, writer, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM stores")
			exec(t, conn, "DELETE FROM subscriptions WHERE id = 1")
			exec(t, writer, strings.Join(statements, ";")+"; COMMIT")
			got := texts(t, conn, "SELECT coalesce(status || ' ' || card_last_four, 'deleted') FROM subscription_states WHERE subscription_id = 1 ORDER BY number")
			assert.Equal(t, got[len(got)-2:], []string{"deleted", "active 4242"}, "the newest states")
			missed := texts(t, conn, "SELECT subscription_id::text FROM missed_states()")
			assert.That(t, len(missed) == 0, "missed states of %v", missed)
		})
	}
}

func TestChanges_OfAReplacementAboveReadCommitted(t *testing.T) {
	t.Parallel()
	conn := dial(t, ephemeral.Migrated(t))
	inOne(t, conn, aShop, threeSubscriptions)
	const replace = `BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE TEMPORARY TABLE kept ON COMMIT DROP AS SELECT * FROM subscriptions WHERE id = 1;
		%s; DELETE FROM subscriptions WHERE id = 1; INSERT INTO subscriptions SELECT * FROM kept; COMMIT`
	exec(t, conn, fmt.Sprintf(replace, "SELECT"))
	exec(t, conn, fmt.Sprintf(replace, "UPDATE kept SET status = 'canceled', canceled_at = now(), cancellation_reason = 'dear'"))
	got := texts(t, conn, "SELECT status || coalesce(' ' || cancellation_reason, '') FROM subscription_states WHERE subscription_id = 1 ORDER BY number")
	assert.Equal(t, got, []string{"active", "canceled dear"}, "states")
}

// awaitLocks waits until at least so many connections to the database wait for locks.
func awaitLocks(t *testing.T, conn *pgx.Conn, connections int) {
	t.Helper()
	ephemeral.Eventually(t, "connections wait for locks", func() bool {
		return len(texts(t, conn, "SELECT wait_event FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")) >= connections
	})
}

// A transaction that waits to give a card, and finds that the card's update was rolled back, waits for the next update, too.
func TestChanges_OfACardThatIsGivenMeanwhileMissNothing(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, first, second, giver := dial(t, url), dial(t, url), dial(t, url), dial(t, url)
	inOne(t, conn, aShop, threeSubscriptions)
	for round := range 20 {
		exec(t, conn, "UPDATE subscriptions SET saved_card_id = NULL WHERE id = 3")
		renumber := fmt.Sprintf("UPDATE saved_cards SET last_four = '%04d' WHERE id = 4", round)
		exec(t, first, "BEGIN; "+renumber)
		var both sync.WaitGroup
		for _, of := range []struct {
			conn      *pgx.Conn
			statement string
		}{{second, renumber}, {giver, "UPDATE subscriptions SET saved_card_id = 4 WHERE id = 3"}} {
			both.Go(func() { exec(t, of.conn, "BEGIN; "+of.statement+"; SELECT pg_sleep(0.02); COMMIT") })
		}
		awaitLocks(t, conn, 2)
		exec(t, first, "ROLLBACK")
		both.Wait()
		missed := texts(t, conn, "SELECT subscription_id::text FROM missed_states()")
		assert.Require(t, len(missed) == 0, "round %d: missed states of %v", round, missed)
	}
}

// A database that was copied has other transactions than those in its rows.
func TestUp_StampsTheSubscriptionsOfACopyAnew(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	inOne(t, conn, aShop, threeSubscriptions, "DELETE FROM subscriptions WHERE id = 3")
	r, err := m.Up(t.Context())
	assert.Require(t, err == nil && !r.Restarted, "in its own database: %+v, %v", r, err)
	mark := func() string { return texts(t, conn, "SELECT mark::text FROM subscription_timelines")[0] }
	before := mark()
	for _, copied := range []string{"system_identifier = 1", "database_oid = 1", "table_oid = 1"} {
		last := inOne(t, conn, "UPDATE subscription_timelines SET "+copied, "DELETE FROM subscription_states WHERE subscription_id = 2")
		states := texts(t, conn, "SELECT number::text FROM subscription_states ORDER BY number")
		inOne(t, conn, "UPDATE subscriptions SET order_id = 9 WHERE id = 1") // the platform may write before Up
		r, err := m.Up(t.Context())
		assert.That(t, err == nil && r.Restarted && r.Stamped == 2, "%s: %+v, %v", copied, r, err)
		old := texts(t, conn, "SELECT id::text FROM subscriptions WHERE changed_in <= $1", last)
		old = append(old, texts(t, conn, "SELECT 'state ' || number FROM subscription_states WHERE recorded_in <= $1", last)...)
		assert.That(t, len(old) == 0, "%s: %v have the old stamp", copied, old)
		assert.That(t, !strings.Contains(changedIn(t, conn), "deleted"), "%s: %s", copied, changedIn(t, conn))
		kept := texts(t, conn, "SELECT number::text FROM subscription_states WHERE NOT first OR subscription_id <> 2 ORDER BY number")
		assert.Equal(t, kept, states, "%s: the states", copied)
		begun := texts(t, conn, "SELECT status FROM subscription_states WHERE first AND was_bearing AND subscription_id = 2")
		assert.Equal(t, begun, []string{"active"}, "%s: the history that begins", copied)
		after := mark()
		assert.That(t, after != before, "%s: the timeline has the same mark", copied)
		before = after
		r, err = m.Up(t.Context())
		assert.That(t, err == nil && !r.Restarted, "%s, repeated: %+v, %v", copied, r, err)
	}
}

// A prune that has folded states before the restart leaves no transaction of another server: no cursor would be as new.
func TestUp_ForgetsWhatAFoldAtTheSameTimeHasFolded(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m, prune := dial(t, url), open(t, url), dial(t, url)
	inOne(t, conn, aShop, threeSubscriptions, "UPDATE subscription_timelines SET system_identifier = 1")
	exec(t, prune, `BEGIN; SELECT FROM subscription_states FOR UPDATE;
		INSERT INTO folded_states VALUES (1, '7000000', 1, pg_current_xact_id())`)
	restarted := goUp(m)
	awaitLocks(t, conn, 1)
	exec(t, prune, "COMMIT")
	assert.NoError(t, <-restarted)
	left := texts(t, conn, "SELECT recorded_in::text FROM folded_states")
	assert.That(t, len(left) == 0, "folded states of %v", left)
}

// The platform may change a subscription whose history is about to begin.
func TestUp_BeginsHistoriesAfterWriters(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m, writer := dial(t, url), open(t, url), dial(t, url)
	inOne(t, conn, aShop, threeSubscriptions, "UPDATE subscription_timelines SET system_identifier = 1", "DELETE FROM subscription_states")
	exec(t, writer, "BEGIN; UPDATE subscriptions SET status = 'expired' WHERE id = 2; DELETE FROM subscriptions WHERE id = 3")
	restarted := goUp(m)
	awaitLocks(t, conn, 1)
	exec(t, writer, "COMMIT")
	assert.NoError(t, <-restarted)
	latest := texts(t, conn, `SELECT DISTINCT ON (subscription_id) subscription_id || coalesce(' ' || status, ' deleted')
		FROM subscription_states ORDER BY subscription_id, number DESC`)
	assert.Equal(t, latest, []string{"1 active", "2 expired", "3 deleted"}, "the latest states")
}

// Existing rows are not rewritten by the migration, and are among the changes.
func TestSubscriptionChanges_StampsExistingRows(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m := dial(t, url), open(t, url)
	downTo(t, m, 101)
	exec(t, conn, aShop+threeSubscriptions)
	assert.Must(m.Up(t.Context()))(t)
	assert.Equal(t, len(texts(t, conn, "SELECT DISTINCT changed_in::text FROM subscriptions")), 1, "transactions")
	assert.Equal(t, len(texts(t, conn, "SELECT mark::text FROM subscription_timelines")), 1, "timelines")
}

// goUp migrates in the background.
func goUp(m *migrations.Migrator) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := m.Up(context.Background())
		done <- err
	}()
	return done
}

// While the migration waits for a writer, others can read subscriptions, and the
// writer can go on to them.
func TestSubscriptionChanges_StopsNobodyWhileItWaits(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m, writer := dial(t, url), open(t, url), dial(t, url)
	downTo(t, m, 101)
	exec(t, conn, aShop+threeSubscriptions)
	exec(t, writer, "BEGIN; UPDATE saved_cards SET last_four = '1111'")
	migrated := goUp(m)
	const waits = "SELECT mode FROM pg_locks WHERE NOT granted AND relation = 'saved_cards'::regclass"
	for len(texts(t, conn, waits)) == 0 {
		time.Sleep(time.Millisecond)
	}
	exec(t, conn, "SET lock_timeout = '100ms'; SELECT FROM subscriptions")
	exec(t, writer, "UPDATE subscriptions SET order_id = 9 WHERE id = 1; COMMIT")
	assert.NoError(t, <-migrated)
}

// While the migration waits for a reader of states, others can read subscriptions.
func TestFigures_StopsNoReaderOfSubscriptionsWhileItWaits(t *testing.T) {
	t.Parallel()
	url := ephemeral.Migrated(t)
	conn, m, reader := dial(t, url), open(t, url), dial(t, url)
	downTo(t, m, 110)
	exec(t, conn, aShop+threeSubscriptions)
	exec(t, reader, "BEGIN; SELECT FROM subscription_states")
	migrated := goUp(m)
	const waits = "SELECT mode FROM pg_locks WHERE relation = 'saved_cards'::regclass AND mode = 'ShareRowExclusiveLock'"
	for len(texts(t, conn, waits)) == 0 {
		time.Sleep(time.Millisecond)
	}
	exec(t, conn, "SET lock_timeout = '100ms'")
	for range 10 {
		exec(t, conn, "SELECT FROM subscriptions")
		time.Sleep(20 * time.Millisecond)
	}
	exec(t, reader, "COMMIT")
	assert.NoError(t, <-migrated)
}
