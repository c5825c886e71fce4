-- What GET /subscriptions/changes reads: which transaction changed a subscription last,
-- which subscriptions were deleted, and which history the database has.
-- docs/design.md explains how a reader misses no change.
--
-- Existing rows get this migration's transaction, without being rewritten.

-- +goose Up

-- A reader that holds a table for long must not make all others wait behind this. Repeat
-- the migration when it gives up.
SET LOCAL lock_timeout = '2s';

-- Writers come from a card to its subscriptions, so this does too: neither waits for the
-- other. The lock that stops readers comes last, so that it is never held while waiting.
LOCK saved_cards IN SHARE ROW EXCLUSIVE MODE;

ALTER TABLE subscriptions ADD COLUMN changed_in xid8 NOT NULL DEFAULT pg_current_xact_id();
ALTER TABLE subscriptions ALTER COLUMN changed_in DROP DEFAULT; -- a trigger sets it
COMMENT ON COLUMN subscriptions.changed_in IS 'the transaction that inserted or updated the row last; a trigger sets it';

-- One row for each deleted subscription. If a new one gets its ID, the row stays, and readers
-- ignore it. There is no foreign key, so a store that is deleted leaves its rows
-- here until `commerce subscriptions prune` deletes them, 90 days after deleted_at.
CREATE TABLE deleted_subscriptions (
    store_id   bigint      NOT NULL,
    id         bigint      NOT NULL,
    deleted_in xid8        NOT NULL,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (store_id, id)
);
CREATE INDEX deleted_subscriptions_by_change ON deleted_subscriptions (store_id, deleted_in, id);
CREATE INDEX deleted_subscriptions_by_time ON deleted_subscriptions (deleted_at);

-- The last deletion of each store that was pruned. A reader whose cursor is before
-- it would miss it.
CREATE TABLE pruned_deletions (
    store_id   bigint PRIMARY KEY,
    deleted_in xid8   NOT NULL,
    id         bigint NOT NULL
);

-- The timelines that the service, or a writer of subscriptions, has met. A row of the
-- latest one identifies the database in which the values of changed_in are valid. They mean
-- nothing in a database that was restored from a dump, so `commerce migrate up` restarts
-- the changes there. A timeline may have several marks: a key on it would make writers wait.
CREATE TABLE subscription_timelines (
    timeline          bigint NOT NULL,
    mark              bigint PRIMARY KEY,
    forked_at         pg_lsn,
    system_identifier bigint NOT NULL,
    database_oid      oid    NOT NULL,
    table_oid         oid    NOT NULL
);
COMMENT ON COLUMN subscription_timelines.timeline IS 'of the write-ahead log; each promotion of a replica begins another one';
COMMENT ON COLUMN subscription_timelines.mark IS 'a random number, so that two copies of a database with the same timeline differ';
COMMENT ON COLUMN subscription_timelines.forked_at IS 'where the timeline before ended; null: not known';
COMMENT ON COLUMN subscription_timelines.table_oid IS 'of subscriptions; pg_restore --clean creates another table';

-- The functions that write other tables run with the rights of the tables' owner, so that
-- the platform's role needs no rights on these.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- +goose StatementBegin

-- The timeline of the write-ahead log, and where the timeline before ended. The latter is
-- known only until the server restarts: for a promoted replica, the end of what it replayed. A
-- server that has only recovered from a crash has no last_xact_replay_timestamp.
CREATE FUNCTION wal_timeline(OUT timeline bigint, OUT forked_at pg_lsn) LANGUAGE sql AS $$
    SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint,
        CASE WHEN pg_last_xact_replay_timestamp() IS NOT NULL THEN pg_last_wal_replay_lsn() END
$$;

-- Identifies the database and the table in which transaction IDs are valid.
CREATE FUNCTION database_identity(OUT system_identifier bigint, OUT database_oid oid, OUT table_oid oid) LANGUAGE sql AS $$
    SELECT s.system_identifier, d.oid, to_regclass('subscriptions')::oid
    FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()
$$;

-- Adds the timeline of the write-ahead log, if it is new. The service also calls this in a
-- transaction of its own, as soon as it is connected, and before it reads changes on a new timeline.
CREATE FUNCTION mark_timeline() RETURNS void SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
DECLARE
    latest subscription_timelines;
    here record := database_identity();
    wal record := wal_timeline();
BEGIN
    SELECT * INTO latest FROM subscription_timelines ORDER BY timeline DESC LIMIT 1;
    IF latest.timeline >= wal.timeline
        OR (latest.system_identifier, latest.database_oid, latest.table_oid) <> (here.system_identifier, here.database_oid, here.table_oid) THEN
        RETURN; -- known, or commerce migrate up must restart the changes
    END IF;
    INSERT INTO subscription_timelines VALUES (wal.timeline,
        ('x' || encode(substr(uuid_send(gen_random_uuid()), 1, 8), 'hex'))::bit(64)::bigint,
        CASE WHEN latest.timeline IS NOT NULL THEN wal.forked_at END,
        here.system_identifier, here.database_oid, here.table_oid);
END $$;

-- Prepares a transaction that changes subscriptions. If it sees no mark of the timeline, it makes
-- its own, for which no other writer waits. So a change never reaches a standby before a mark.
CREATE FUNCTION begin_subscription_changes() RETURNS void SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mark_timeline();
    PERFORM set_config('commerce.changes_in', pg_current_xact_id()::text, true);
END $$;

-- A writer may have no rights on new functions by default, as after ALTER DEFAULT PRIVILEGES.
GRANT EXECUTE ON FUNCTION begin_subscription_changes(), mark_timeline() TO PUBLIC;

-- Runs for each row, so it prepares the transaction only once, and sets no search_path.
CREATE FUNCTION stamp_subscription() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id();
    IF current_setting('commerce.changes_in', true) IS DISTINCT FROM NEW.changed_in::text THEN
        EXECUTE format('SELECT %I.begin_subscription_changes()', TG_TABLE_SCHEMA);
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION keep_deletion() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('commerce.changes_in', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        PERFORM begin_subscription_changes();
    END IF;
    INSERT INTO deleted_subscriptions VALUES (OLD.store_id, OLD.id, pg_current_xact_id(), now())
    ON CONFLICT (store_id, id) DO UPDATE SET deleted_in = excluded.deleted_in, deleted_at = excluded.deleted_at;
    RETURN NULL;
END $$;

CREATE FUNCTION keep_all_deletions() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN -- an older snapshot does not see all rows
        RAISE feature_not_supported USING MESSAGE = 'TRUNCATE subscriptions needs a transaction that is READ COMMITTED';
    END IF;
    PERFORM begin_subscription_changes();
    INSERT INTO deleted_subscriptions SELECT store_id, id, pg_current_xact_id(), now() FROM subscriptions
    ON CONFLICT (store_id, id) DO UPDATE SET deleted_in = excluded.deleted_in, deleted_at = excluded.deleted_at;
    RETURN NULL;
END $$;

-- A card's digits are shown with the subscriptions that it pays. A transaction that gives
-- the card to a subscription holds a lock on the card (its foreign key). An update of the
-- digits waits for it here, so that it sees the subscription. After the update, it would be
-- too late: who waited for an update that was rolled back does not wait for the next one.
CREATE FUNCTION lock_card() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM saved_cards WHERE (store_id, customer_id, id) = (OLD.store_id, OLD.customer_id, OLD.id) FOR UPDATE;
    RETURN NEW;
END $$;

-- Above READ COMMITTED, the update sees only the transaction's snapshot. The foreign key sees more: if
-- a subscription has got the card since, deleting the card fails with serialization_failure (40001).
CREATE FUNCTION stamp_card() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off LANGUAGE plpgsql AS $$
DECLARE
    paid bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        BEGIN
            DELETE FROM saved_cards WHERE (store_id, customer_id, id) = (NEW.store_id, NEW.customer_id, NEW.id);
            RAISE SQLSTATE 'UNDEL';
        EXCEPTION WHEN SQLSTATE 'UNDEL' THEN -- the card is back
        END;
    END IF;
    -- Ordered by ID, no other index of a store seems as good as that of a customer, whatever was analyzed.
    FOR paid IN SELECT id FROM subscriptions
        WHERE store_id = NEW.store_id AND customer_id = NEW.customer_id AND saved_card_id = NEW.id ORDER BY id FOR NO KEY UPDATE
    LOOP
        UPDATE subscriptions SET saved_card_id = saved_card_id WHERE store_id = NEW.store_id AND id = paid;
    END LOOP;
    RETURN NULL;
END $$;

-- +goose StatementEnd

CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON subscriptions FOR EACH ROW EXECUTE FUNCTION stamp_subscription();
CREATE TRIGGER deleted AFTER DELETE ON subscriptions FOR EACH ROW EXECUTE FUNCTION keep_deletion();
CREATE TRIGGER moved AFTER UPDATE ON subscriptions
    FOR EACH ROW WHEN ((OLD.store_id, OLD.id) <> (NEW.store_id, NEW.id)) EXECUTE FUNCTION keep_deletion();
CREATE TRIGGER emptied BEFORE TRUNCATE ON subscriptions FOR EACH STATEMENT EXECUTE FUNCTION keep_all_deletions();
CREATE TRIGGER lock BEFORE UPDATE ON saved_cards
    FOR EACH ROW WHEN ((OLD.last_four, OLD.scheme) <> (NEW.last_four, NEW.scheme)) EXECUTE FUNCTION lock_card();
CREATE TRIGGER stamp AFTER UPDATE ON saved_cards
    FOR EACH ROW WHEN ((OLD.last_four, OLD.scheme) <> (NEW.last_four, NEW.scheme)) EXECUTE FUNCTION stamp_card();

-- A subscriber of logical replication fires only these.
ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER stamp;
ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER deleted;
ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER moved;
ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER emptied;
ALTER TABLE saved_cards ENABLE ALWAYS TRIGGER lock;
ALTER TABLE saved_cards ENABLE ALWAYS TRIGGER stamp;

SELECT mark_timeline() WHERE EXISTS (SELECT FROM subscriptions);

-- Changes are read in the order of this index.
CREATE INDEX subscriptions_by_change ON subscriptions (store_id, changed_in, id);

-- +goose Down
SET LOCAL lock_timeout = '2s';
DROP TRIGGER lock ON saved_cards;
DROP TRIGGER stamp ON saved_cards;
DROP TRIGGER stamp ON subscriptions;
DROP TRIGGER deleted ON subscriptions;
DROP TRIGGER moved ON subscriptions;
DROP TRIGGER emptied ON subscriptions;
DROP FUNCTION lock_card(), stamp_card(), keep_all_deletions(), keep_deletion(), stamp_subscription(),
    begin_subscription_changes(), mark_timeline(), database_identity(), wal_timeline();
DROP TABLE subscription_timelines, pruned_deletions, deleted_subscriptions;
ALTER TABLE subscriptions DROP COLUMN changed_in;
