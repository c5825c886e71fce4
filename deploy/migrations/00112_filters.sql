-- Filters of subscriptions by product, by plan, by the day of their creation, and by whether they end. Each index is
-- one that every update of a subscription writes, except for the last.
--
-- Indexes are built as in 00106.

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
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
DROP INDEX IF EXISTS subscriptions_that_end;
DROP INDEX IF EXISTS subscriptions_by_day;
DROP INDEX IF EXISTS subscriptions_by_variant;
DROP INDEX IF EXISTS subscriptions_by_product;
RESET lock_timeout;
