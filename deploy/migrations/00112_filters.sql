-- Filters of subscriptions by product, by plan, by the day of their creation, and by whether they end; why they were
-- canceled; and the events of a store in the order of their transactions.
--
-- Indexes are built as in 00106. Every update of a subscription writes the first three.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '2s'; -- as in 00102

-- +goose StatementBegin
DO $$
DECLARE
    made record;
    part name;
BEGIN
    FOR made IN VALUES ('subscriptions_by_product', '(store_id, product_id, status, id)'),
        ('subscriptions_by_variant', '(store_id, variant_id, status, id)'),
        ('subscriptions_by_day', '(store_id, ((created_at AT TIME ZONE ''UTC'')::date), id)'),
        ('subscriptions_that_end', '(store_id, status, id) WHERE cancel_at_period_end')
    LOOP
        IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(made.column1) AND NOT indisvalid) THEN
            EXECUTE 'DROP INDEX ' || made.column1; -- its build was interrupted
        END IF;
        CONTINUE WHEN (SELECT relkind FROM pg_class WHERE oid = 'subscriptions'::regclass) <> 'p';
        FOR part IN SELECT relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'subscriptions'::regclass LOOP
            EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON %I %s', replace(made.column1, 'subscriptions', part), part, made.column2);
            COMMIT;
        END LOOP;
        EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON subscriptions %s', made.column1, made.column2); -- attaches those
        COMMIT;
    END LOOP;
    IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('subscription_states_by_transaction') AND NOT indisvalid) THEN
        DROP INDEX subscription_states_by_transaction; -- its build was interrupted
    END IF;
    -- As in 00106.
    IF (SELECT relkind FROM pg_class WHERE oid = 'subscriptions'::regclass) = 'p' THEN
        CREATE TEMPORARY TABLE subscriptions (LIKE subscriptions);
    END IF;
END $$;
-- +goose StatementEnd

SET lock_timeout = 0; -- nobody waits for these
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_by_product ON subscriptions (store_id, product_id, status, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_by_variant ON subscriptions (store_id, variant_id, status, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_by_day ON subscriptions (store_id, ((created_at AT TIME ZONE 'UTC')::date), id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_that_end ON subscriptions (store_id, status, id) WHERE cancel_at_period_end;
DROP TABLE IF EXISTS pg_temp.subscriptions;
SET lock_timeout = '2s';

ALTER TABLE subscriptions ADD COLUMN IF NOT EXISTS cancellation_reason text;
ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_cancellation_reason_is_short;
ALTER TABLE subscriptions ADD CONSTRAINT subscription_cancellation_reason_is_short CHECK (length(cancellation_reason) <= 200) NOT VALID;
ALTER TABLE subscriptions VALIDATE CONSTRAINT subscription_cancellation_reason_is_short;
COMMENT ON COLUMN subscriptions.cancellation_reason IS 'why it ends, as merchants read it; null: not known';

-- +goose StatementBegin
DO $migration$
BEGIN
    IF to_regclass('subscription_timelines') IS NULL THEN -- as in 00107
        CREATE TEMPORARY TABLE subscription_states (store_id bigint, recorded_in xid8, number bigint, first boolean);
        RETURN;
    END IF;
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
    -- In the order of writers.
    LOCK saved_cards IN SHARE ROW EXCLUSIVE MODE;
    LOCK subscriptions IN SHARE ROW EXCLUSIVE MODE;

    ALTER TABLE subscription_states ADD COLUMN IF NOT EXISTS cancellation_reason text;
    COMMENT ON COLUMN subscription_states.cancellation_reason IS 'what this transaction left';

    -- What missed_states returns are rows of the table.
    EXECUTE regexp_replace(pg_get_functiondef('missed_states'::regproc), 'pg_current_xact_id\(\)(, s\.cancellation_reason)?(\s+FROM subscriptions)',
        'pg_current_xact_id(), s.cancellation_reason\2');

    -- The last state of each store that was folded, and when: a reader that began before and is not there yet would miss its events.
    CREATE TABLE IF NOT EXISTS folded_states (
        store_id    bigint PRIMARY KEY,
        recorded_in xid8   NOT NULL,
        number      bigint NOT NULL,
        folded_in   xid8   NOT NULL
    );
    COMMENT ON COLUMN folded_states.folded_in IS 'the transaction that folded last; readers that began later miss nothing';

    -- Runs after the state was recorded. What this transaction recorded has the reason that it leaves, in whatever order
    -- it writes them.
    CREATE OR REPLACE FUNCTION record_reason() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE subscription_states SET cancellation_reason = NEW.cancellation_reason
        WHERE store_id = NEW.store_id AND subscription_id = NEW.id AND recorded_in = pg_current_xact_id() AND NOT first
            AND status IS NOT NULL AND cancellation_reason IS DISTINCT FROM NEW.cancellation_reason;
        RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER _told_reason AFTER UPDATE ON subscriptions FOR EACH ROW
        WHEN (OLD.cancellation_reason IS NOT NULL OR NEW.cancellation_reason IS NOT NULL) EXECUTE FUNCTION record_reason();
    -- What record_state records of an insert lacks the reason.
    CREATE OR REPLACE TRIGGER _told_reason_insert AFTER INSERT ON subscriptions FOR EACH ROW
        WHEN (NEW.cancellation_reason IS NOT NULL
            AND (current_setting('transaction_isolation') <> 'read committed' OR current_setting('session_replication_role') = 'replica'))
        EXECUTE FUNCTION record_reason();
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _told_reason;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _told_reason_insert;
    REVOKE EXECUTE ON FUNCTION record_reason() FROM PUBLIC;
END $migration$;
-- +goose StatementEnd

-- Events are read in the order of this index.
SET lock_timeout = 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscription_states_by_transaction ON subscription_states (store_id, recorded_in, number) WHERE NOT first;
DROP TABLE IF EXISTS pg_temp.subscription_states;
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
-- +goose StatementBegin
DO $migration$
BEGIN
    IF to_regclass('subscription_timelines') IS NOT NULL THEN
        LOCK saved_cards, subscriptions IN ACCESS EXCLUSIVE MODE; -- as in 00107
        DROP TRIGGER IF EXISTS _told_reason ON subscriptions;
        DROP TRIGGER IF EXISTS _told_reason_insert ON subscriptions;
        DROP FUNCTION IF EXISTS record_reason();
        DROP TABLE IF EXISTS folded_states;
        DROP INDEX IF EXISTS subscription_states_by_transaction;
        PERFORM set_config('check_function_bodies', 'off', true); -- until the columns are gone
        EXECUTE regexp_replace(pg_get_functiondef('missed_states'::regproc), ', s\.cancellation_reason(\s+FROM subscriptions)', '\1');
        ALTER TABLE subscription_states DROP COLUMN IF EXISTS cancellation_reason;
    END IF;
END $migration$;
-- +goose StatementEnd
ALTER TABLE subscriptions DROP COLUMN IF EXISTS cancellation_reason;
DROP INDEX IF EXISTS subscriptions_that_end;
DROP INDEX IF EXISTS subscriptions_by_day;
DROP INDEX IF EXISTS subscriptions_by_variant;
DROP INDEX IF EXISTS subscriptions_by_product;
RESET lock_timeout;
