-- Lists of subscriptions by order, and by the end of the current period.
--
-- Each statement commits by itself, as in 00104, and a migration that failed can be repeated. The
-- indexes are built while others read and write. Postgres cannot do that for a partitioned table
-- (deploy/postgres/partitions.sql), so it builds those of one partition after the other, and only
-- writers of that partition wait.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '2s'; -- as in 00102

-- +goose StatementBegin
DO $$
DECLARE
    made record;
    part name;
BEGIN
    FOR made IN VALUES ('subscriptions_by_order', '(store_id, order_id, id)'),
        ('subscriptions_by_period_end', '(store_id, status, current_period_end, id)')
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
    -- CREATE INDEX CONCURRENTLY fails on a partitioned table. Its indexes exist now, so an empty
    -- table hides it from the statements below.
    IF (SELECT relkind FROM pg_class WHERE oid = 'subscriptions'::regclass) = 'p' THEN
        CREATE TEMPORARY TABLE subscriptions (LIKE subscriptions);
    END IF;
END $$;
-- +goose StatementEnd

SET lock_timeout = 0; -- nobody waits for these
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_by_order ON subscriptions (store_id, order_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_by_period_end ON subscriptions (store_id, status, current_period_end, id);
DROP TABLE IF EXISTS pg_temp.subscriptions;

-- subscriptions_by_calling_code_and_status has the same rows, in order within each state.
SET lock_timeout = '2s';
DROP INDEX IF EXISTS subscriptions_store_id_calling_code_id_idx;
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
CREATE INDEX IF NOT EXISTS subscriptions_store_id_calling_code_id_idx ON subscriptions (store_id, calling_code, id); -- writers wait
DROP INDEX IF EXISTS subscriptions_by_period_end;
DROP INDEX IF EXISTS subscriptions_by_order;
RESET lock_timeout;
