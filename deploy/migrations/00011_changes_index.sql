-- +goose NO TRANSACTION

-- The index in whose order changes are read. It is built while others read and write. Databases
-- that applied 00010 with an earlier release already have it.

-- +goose Up

-- An interrupted build leaves an invalid index.
-- +goose StatementBegin
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('subscriptions_by_change') AND NOT indisvalid) THEN
        SET LOCAL lock_timeout = '2s'; -- as in 00006
        DROP INDEX subscriptions_by_change;
    END IF;
END $$;
-- +goose StatementEnd
CREATE INDEX CONCURRENTLY IF NOT EXISTS subscriptions_by_change ON subscriptions (store_id, changed_in, id);

-- +goose Down
-- The index stays, and 00010 drops it: the release before reads changes at version 10, and has
-- the index there.
SELECT 1;
