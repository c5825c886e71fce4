-- +goose NO TRANSACTION

-- The indexes for the filters status and externalCustomerId, and for the summary. They are
-- built while others read and write. An interrupted build leaves an invalid index, so the
-- migration first drops it.

-- +goose Up

-- Also for the summary, which reads the included columns of all rows of a store.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_status;
CREATE INDEX CONCURRENTLY subscriptions_by_status ON subscriptions (store_id, status, id)
    INCLUDE (duration, currency, price_amount, cancel_at_period_end);

-- Rows from before migration 3 may have IDs that are too long for an index.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_external_customer;
CREATE INDEX CONCURRENTLY subscriptions_by_external_customer ON subscriptions (store_id, external_customer_id, id)
    WHERE length(external_customer_id) <= 255;

DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_calling_code_and_status;
CREATE INDEX CONCURRENTLY subscriptions_by_calling_code_and_status ON subscriptions (store_id, calling_code, status, id);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_calling_code_and_status;
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_external_customer;
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_status;
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_change; -- of 00011, which leaves it
