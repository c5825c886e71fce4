-- Every state that a subscription had, for its history and for metrics. Begins with the state
-- that each subscription has now: for a million of them, writers wait about 10 seconds.
--
-- A sharded database (00103) has no changes of subscriptions, so it has no history either.

-- +goose Up
SET LOCAL lock_timeout = '2s'; -- as in 00102

-- +goose StatementBegin
DO $migration$
BEGIN
    IF to_regclass('subscription_timelines') IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

    -- In the order of writers, as in 00102. Readers go on.
    LOCK saved_cards IN SHARE ROW EXCLUSIVE MODE;
    LOCK subscriptions IN SHARE ROW EXCLUSIVE MODE;

    -- There is no foreign key: the states of a deleted subscription stay until
    -- `commerce subscriptions prune` deletes them, three years later.
    CREATE TABLE subscription_states (
        store_id             bigint      NOT NULL,
        subscription_id      bigint      NOT NULL,
        number               bigint      GENERATED ALWAYS AS IDENTITY,
        recorded_at          timestamptz NOT NULL,
        first                boolean     NOT NULL,
        was_bearing          boolean     NOT NULL,
        moves_revenue        boolean     NOT NULL DEFAULT true,
        status               text,
        variant_id           bigint,
        price_amount         bigint,
        currency             text,
        duration             text,
        cancel_at_period_end boolean,
        card_last_four       text,
        card_scheme          text,
        period_start         timestamptz,
        period_end           timestamptz,
        PRIMARY KEY (store_id, subscription_id, number)
    );
    -- Metrics read only this index, which most renewals do not change. Inserts make pages visible to
    -- all only after a VACUUM.
    CREATE INDEX subscription_states_by_revenue ON subscription_states (store_id, subscription_id, number)
        INCLUDE (recorded_at, first, was_bearing, status, price_amount, currency, duration) WHERE first OR moves_revenue;
    ALTER TABLE subscription_states SET (autovacuum_vacuum_insert_scale_factor = 0.02);
    COMMENT ON COLUMN subscription_states.number IS 'orders the states of a subscription: its row is locked while one is recorded';
    COMMENT ON COLUMN subscription_states.recorded_at IS 'the time of the change, not of the commit';
    COMMENT ON COLUMN subscription_states.first IS 'nothing happened at this row: recording began, or older rows were folded into it';
    COMMENT ON COLUMN subscription_states.was_bearing IS 'of a first row: the subscription is active or past due, or was before; false in other rows';
    COMMENT ON COLUMN subscription_states.moves_revenue IS 'false: status, price, currency and duration are as in the row before';
    COMMENT ON COLUMN subscription_states.status IS 'null: the subscription was deleted, which also removed the cards of its rows';
    COMMENT ON COLUMN subscription_states.card_last_four IS 'null: as in the row before; empty: no card';

    -- What each subscription is now whose history is empty or ends with something else; only of those that a
    -- transaction has stamped, if it is given. Metrics read only some states, so the last one of these counts,
    -- too. A history can begin late: a subscription whose paid time goes on after its trial has been active.
    CREATE FUNCTION missed_states(stamped xid8 DEFAULT NULL) RETURNS SETOF subscription_states STABLE LANGUAGE sql AS $$
        SELECT s.store_id, s.id, NULL::bigint, clock_timestamp(), latest.number IS NULL, latest.number IS NULL
                AND (s.status IN ('active', 'past_due') OR s.status <> 'trialing' AND coalesce(s.ends_at > s.trial_ends_at, true)),
            true, s.status, s.variant_id, s.price_amount, s.currency, s.duration, s.cancel_at_period_end,
            coalesce(c.last_four, ''), coalesce(c.scheme, ''), s.current_period_start, s.current_period_end
        FROM subscriptions s
            LEFT JOIN LATERAL (SELECT * FROM saved_cards
                WHERE store_id = s.store_id AND customer_id = s.customer_id AND id = s.saved_card_id LIMIT 1) c ON true
            LEFT JOIN LATERAL (SELECT * FROM subscription_states
                WHERE store_id = s.store_id AND subscription_id = s.id ORDER BY number DESC LIMIT 1) latest ON true
            LEFT JOIN LATERAL (SELECT * FROM subscription_states
                WHERE store_id = s.store_id AND subscription_id = s.id AND card_last_four IS NOT NULL ORDER BY number DESC LIMIT 1) known ON true
            LEFT JOIN LATERAL (SELECT * FROM subscription_states
                WHERE store_id = s.store_id AND subscription_id = s.id AND (first OR moves_revenue) ORDER BY number DESC LIMIT 1) counted ON true
        WHERE (stamped IS NULL OR s.changed_in = stamped)
            AND (latest.status, latest.variant_id, latest.price_amount, latest.currency, latest.duration, latest.cancel_at_period_end,
                latest.period_start, latest.period_end, known.card_last_four, known.card_scheme,
                counted.status, counted.price_amount, counted.currency, counted.duration)
            IS DISTINCT FROM (s.status, s.variant_id, s.price_amount, s.currency, s.duration, s.cancel_at_period_end,
                s.current_period_start, s.current_period_end, coalesce(c.last_four, ''), coalesce(c.scheme, ''),
                s.status, s.price_amount, s.currency, s.duration)
    $$;

    -- Histories that do not end with the deletion of their subscription, which does not exist.
    CREATE FUNCTION missed_deletions(OUT store_id bigint, OUT subscription_id bigint) RETURNS SETOF record STABLE LANGUAGE sql AS $$
        SELECT h.store_id, h.subscription_id FROM subscription_states h
        WHERE NOT EXISTS (SELECT FROM subscriptions s WHERE s.store_id = h.store_id AND s.id = h.subscription_id)
        GROUP BY h.store_id, h.subscription_id HAVING (array_agg(h.status ORDER BY h.number DESC))[1] IS NOT NULL
    $$;

    -- Records what changed without the triggers, and returns how many subscriptions. Their readers get them
    -- as changes. Safe to repeat, and while others write. EXECUTE plans for the present sizes of the tables,
    -- but their statistics may be old. A table without a usable index has a high cost then, for which Postgres
    -- would compile code for each partition: minutes without jit = off.
    CREATE FUNCTION record_missed_states() RETURNS bigint
        SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off LANGUAGE plpgsql AS $$
    DECLARE
        gone bigint;
        changed bigint;
    BEGIN
        IF current_setting('transaction_isolation') <> 'read committed' THEN -- an older snapshot does not see all rows
            RAISE feature_not_supported USING MESSAGE = 'record_missed_states() needs a transaction that is READ COMMITTED';
        END IF;
        PERFORM begin_subscription_changes();
        EXECUTE 'SELECT count(*) FROM missed_deletions()' INTO gone;
        IF gone > 0 THEN
            LOCK subscriptions IN SHARE ROW EXCLUSIVE MODE; -- one could be inserted again before its deletion is recorded
            EXECUTE '
                WITH gone AS MATERIALIZED (SELECT * FROM missed_deletions()),
                kept AS (
                    INSERT INTO deleted_subscriptions SELECT store_id, subscription_id, pg_current_xact_id(), now() FROM gone
                    ON CONFLICT (store_id, id) DO UPDATE SET deleted_in = excluded.deleted_in, deleted_at = excluded.deleted_at
                ),
                cards AS (
                    UPDATE subscription_states h SET card_last_four = NULL, card_scheme = NULL
                    FROM gone WHERE h.store_id = gone.store_id AND h.subscription_id = gone.subscription_id
                )
                INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing)
                SELECT store_id, subscription_id, clock_timestamp(), false, false FROM gone';
            GET DIAGNOSTICS gone = ROW_COUNT;
        END IF;
        -- Locks the rows, and stamps them also while the triggers are disabled. The next statement sees what
        -- others have recorded until then.
        EXECUTE '
            UPDATE subscriptions s SET changed_in = pg_current_xact_id()
            FROM missed_states() m WHERE s.store_id = m.store_id AND s.id = m.subscription_id';
        EXECUTE '
            INSERT INTO subscription_states OVERRIDING USER VALUE SELECT * FROM missed_states(pg_current_xact_id())';
        GET DIAGNOSTICS changed = ROW_COUNT;
        RETURN gone + changed;
    END $$;

    -- A plan stays the same while a statement runs, so without enable_seqscan = off, each of its rows could
    -- read a whole table that was almost empty when it was analyzed.

    CREATE FUNCTION record_missed_state(store bigint, subscription bigint) RETURNS void
        SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO subscription_states OVERRIDING USER VALUE
        SELECT * FROM missed_states() WHERE store_id = store AND subscription_id = subscription;
    END $$;

    -- The next two are for many rows at a time, so they set no search_path.
    EXECUTE format($functions$
        -- Records an insert. A row with the ID of a deleted one has earlier states, and one from a dump has
        -- all of them.
        CREATE FUNCTION record_insert() RETURNS trigger SECURITY DEFINER SET enable_seqscan = off LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO %1$I.subscription_states (store_id, subscription_id, recorded_at, first, was_bearing, status, variant_id,
                price_amount, currency, duration, cancel_at_period_end, card_last_four, card_scheme, period_start, period_end)
            SELECT NEW.store_id, NEW.id, pg_catalog.clock_timestamp(), false, false, NEW.status, NEW.variant_id,
                NEW.price_amount, NEW.currency, NEW.duration, NEW.cancel_at_period_end,
                coalesce(c.last_four, ''), coalesce(c.scheme, ''), NEW.current_period_start, NEW.current_period_end
            FROM (VALUES (0)) one LEFT JOIN %1$I.saved_cards c -- by all columns of an index, so no other one seems as good
                ON c.store_id OPERATOR(pg_catalog.=) NEW.store_id AND c.customer_id OPERATOR(pg_catalog.=) NEW.customer_id
                    AND c.id OPERATOR(pg_catalog.=) NEW.saved_card_id
            WHERE NOT EXISTS (SELECT FROM %1$I.subscription_states s
                WHERE s.store_id OPERATOR(pg_catalog.=) NEW.store_id AND s.subscription_id OPERATOR(pg_catalog.=) NEW.id);
            IF NOT FOUND THEN
                PERFORM %1$I.record_missed_state(NEW.store_id, NEW.id);
            END IF;
            RETURN NULL;
        END $$;

        -- Records an update that leaves the ID and the card, which is not read. A SERIALIZABLE transaction
        -- reads no state: others that update other subscriptions would fail.
        CREATE FUNCTION record_update() RETURNS trigger SECURITY DEFINER SET enable_seqscan = off LANGUAGE plpgsql AS $$
        DECLARE
            same boolean := false;
            moves boolean := (NEW.status, NEW.price_amount, NEW.currency, NEW.duration)
                OPERATOR(pg_catalog.<>) (OLD.status, OLD.price_amount, OLD.currency, OLD.duration);
        BEGIN
            IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'serializable' THEN
                SELECT (status, variant_id, price_amount, currency, duration, cancel_at_period_end, period_start, period_end)
                        OPERATOR(pg_catalog.=) (NEW.status, NEW.variant_id, NEW.price_amount, NEW.currency, NEW.duration,
                            NEW.cancel_at_period_end, NEW.current_period_start, NEW.current_period_end),
                    (status, price_amount, currency, duration)
                        OPERATOR(pg_catalog.<>) (NEW.status, NEW.price_amount, NEW.currency, NEW.duration)
                INTO same, moves FROM %1$I.subscription_states
                WHERE store_id OPERATOR(pg_catalog.=) NEW.store_id AND subscription_id OPERATOR(pg_catalog.=) NEW.id
                ORDER BY number DESC LIMIT 1;
                IF moves IS NULL THEN -- no history, or one that ended
                    PERFORM %1$I.record_missed_state(NEW.store_id, NEW.id);
                    RETURN NULL;
                END IF;
            END IF;
            IF same THEN
                RETURN NULL;
            END IF;
            INSERT INTO %1$I.subscription_states (store_id, subscription_id, recorded_at, first, was_bearing, moves_revenue, status, variant_id,
                price_amount, currency, duration, cancel_at_period_end, period_start, period_end)
            VALUES (NEW.store_id, NEW.id, pg_catalog.clock_timestamp(), false, false, moves, NEW.status, NEW.variant_id,
                NEW.price_amount, NEW.currency, NEW.duration, NEW.cancel_at_period_end, NEW.current_period_start, NEW.current_period_end);
            RETURN NULL;
        END $$
    $functions$, current_schema());

    -- Records anything else. Foreign keys are checked before, so the card exists, and its digits
    -- cannot change before the end of the transaction. A replica checks no foreign keys, so it locks the card.
    -- Above READ COMMITTED, they may have changed since the snapshot: the lock fails then, with
    -- serialization_failure (40001).
    CREATE FUNCTION record_state() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off LANGUAGE plpgsql AS $$
    DECLARE
        latest subscription_states;
        known subscription_states; -- the latest row with a card
        card saved_cards;
        begins boolean := false;
    BEGIN
        IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (OLD.store_id, OLD.id) <> (NEW.store_id, NEW.id) THEN
            -- All rows, since a prune may move the card from one to another at the same time.
            UPDATE subscription_states SET card_last_four = NULL, card_scheme = NULL
            WHERE store_id = OLD.store_id AND subscription_id = OLD.id;
            INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing)
            VALUES (OLD.store_id, OLD.id, clock_timestamp(), false, false);
            IF TG_OP = 'DELETE' THEN
                RETURN NULL;
            END IF;
        END IF;
        IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('session_replication_role') = 'replica' THEN
            SELECT * INTO card FROM saved_cards WHERE store_id = NEW.store_id AND customer_id = NEW.customer_id AND id = NEW.saved_card_id FOR SHARE;
        ELSE
            SELECT * INTO card FROM saved_cards WHERE store_id = NEW.store_id AND customer_id = NEW.customer_id AND id = NEW.saved_card_id;
        END IF;
        card.last_four := coalesce(card.last_four, '');
        card.scheme := coalesce(card.scheme, '');
        -- Another card may look the same. And a row that is inserted from a dump has its states already.
        -- An older snapshot does not see that a row with this ID was deleted, so nothing is compared with
        -- it. Such reads would also make SERIALIZABLE transactions that insert fail.
        IF TG_OP = 'UPDATE' OR current_setting('transaction_isolation') = 'read committed' THEN
            SELECT * INTO latest FROM subscription_states WHERE store_id = NEW.store_id AND subscription_id = NEW.id ORDER BY number DESC LIMIT 1;
            SELECT * INTO known FROM subscription_states
            WHERE store_id = NEW.store_id AND subscription_id = NEW.id AND card_last_four IS NOT NULL ORDER BY number DESC LIMIT 1;
            IF (latest.status, latest.variant_id, latest.price_amount, latest.currency, latest.duration, latest.cancel_at_period_end,
                    latest.period_start, latest.period_end, known.card_last_four, known.card_scheme)
                = (NEW.status, NEW.variant_id, NEW.price_amount, NEW.currency, NEW.duration, NEW.cancel_at_period_end,
                    NEW.current_period_start, NEW.current_period_end, card.last_four, card.scheme)
            THEN
                RETURN NULL;
            END IF;
        END IF;
        -- A subscriber of logical replication that copies the table first was not there when they were created.
        IF TG_OP = 'INSERT' AND current_setting('session_replication_role') = 'replica' THEN
            begins := EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid IN (TG_RELID, to_regclass('subscriptions')) AND srsubstate = 'd');
        END IF;
        INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing, status, variant_id,
            price_amount, currency, duration, cancel_at_period_end, card_last_four, card_scheme, period_start, period_end)
        VALUES (NEW.store_id, NEW.id, clock_timestamp(), begins,
            begins AND (NEW.status IN ('active', 'past_due') OR NEW.status <> 'trialing' AND coalesce(NEW.ends_at > NEW.trial_ends_at, true)),
            NEW.status, NEW.variant_id, NEW.price_amount, NEW.currency, NEW.duration, NEW.cancel_at_period_end,
            card.last_four, card.scheme, NEW.current_period_start, NEW.current_period_end);
        RETURN NULL;
    END $$;

    CREATE FUNCTION record_all_deletions() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
    BEGIN
        LOCK subscription_states IN SHARE ROW EXCLUSIVE MODE; -- a prune moves cards from one row to another
        UPDATE subscription_states SET card_last_four = NULL, card_scheme = NULL WHERE card_last_four IS NOT NULL;
        INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing)
        SELECT store_id, id, clock_timestamp(), false, false FROM subscriptions;
        RETURN NULL;
    END $$;

    -- Runs after the trigger that stamps the card's subscriptions, which has locked them.
    CREATE FUNCTION record_card() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing, status, variant_id,
            price_amount, currency, duration, cancel_at_period_end, card_last_four, card_scheme, period_start, period_end)
        SELECT store_id, id, clock_timestamp(), false, false, status, variant_id,
            price_amount, currency, duration, cancel_at_period_end, NEW.last_four, NEW.scheme, current_period_start, current_period_end
        FROM subscriptions WHERE store_id = NEW.store_id AND customer_id = NEW.customer_id AND saved_card_id = NEW.id
        ORDER BY id; -- as in stamp_card
        RETURN NULL;
    END $$;

    -- They run in the order of their names: after the checks of foreign keys, RI_…, and before triggers
    -- of the platform, which may change the row again.
    CREATE TRIGGER _recorded AFTER DELETE ON subscriptions FOR EACH ROW EXECUTE FUNCTION record_state();
    CREATE TRIGGER _recorded_insert AFTER INSERT ON subscriptions FOR EACH ROW
        WHEN (current_setting('transaction_isolation') = 'read committed' AND current_setting('session_replication_role') <> 'replica')
        EXECUTE FUNCTION record_insert();
    CREATE TRIGGER _recorded_other_insert AFTER INSERT ON subscriptions FOR EACH ROW
        WHEN (current_setting('transaction_isolation') <> 'read committed' OR current_setting('session_replication_role') = 'replica')
        EXECUTE FUNCTION record_state();
    CREATE TRIGGER _recorded_move AFTER UPDATE ON subscriptions
        FOR EACH ROW WHEN ((OLD.store_id, OLD.id) <> (NEW.store_id, NEW.id) OR OLD.saved_card_id IS DISTINCT FROM NEW.saved_card_id)
        EXECUTE FUNCTION record_state();
    CREATE TRIGGER _recorded_update AFTER UPDATE ON subscriptions
        FOR EACH ROW WHEN ((OLD.store_id, OLD.id) = (NEW.store_id, NEW.id) AND OLD.saved_card_id IS NOT DISTINCT FROM NEW.saved_card_id
            AND (OLD.status, OLD.variant_id, OLD.price_amount, OLD.currency, OLD.duration, OLD.cancel_at_period_end,
                OLD.current_period_start, OLD.current_period_end)
            <> (NEW.status, NEW.variant_id, NEW.price_amount, NEW.currency, NEW.duration, NEW.cancel_at_period_end,
                NEW.current_period_start, NEW.current_period_end))
        EXECUTE FUNCTION record_update();
    CREATE TRIGGER recorded_emptying BEFORE TRUNCATE ON subscriptions FOR EACH STATEMENT EXECUTE FUNCTION record_all_deletions();
    CREATE TRIGGER stamp_recorded AFTER UPDATE ON saved_cards
        FOR EACH ROW WHEN ((OLD.last_four, OLD.scheme) <> (NEW.last_four, NEW.scheme)) EXECUTE FUNCTION record_card();

    -- As in 00102.
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _recorded;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _recorded_insert;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _recorded_other_insert;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _recorded_move;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _recorded_update;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER recorded_emptying;
    ALTER TABLE saved_cards ENABLE ALWAYS TRIGGER stamp_recorded;

    -- Whoever may execute one of these could forge changes, by a trigger on a table of its own, or lock all
    -- rows.
    REVOKE EXECUTE ON FUNCTION record_card(), record_all_deletions(), record_state(), record_update(), record_insert(),
        record_missed_state(bigint, bigint), record_missed_states(),
        lock_card(), stamp_card(), keep_all_deletions(), keep_deletion() FROM PUBLIC;

    INSERT INTO subscription_states OVERRIDING USER VALUE SELECT * FROM missed_states();
END $migration$;
-- +goose StatementEnd

-- +goose Down
SET LOCAL lock_timeout = '2s';
LOCK saved_cards, subscriptions IN ACCESS EXCLUSIVE MODE; -- partitions after their table, as writers do
DROP TRIGGER IF EXISTS stamp_recorded ON saved_cards;
DROP TRIGGER IF EXISTS _recorded ON subscriptions;
DROP TRIGGER IF EXISTS _recorded_insert ON subscriptions;
DROP TRIGGER IF EXISTS _recorded_other_insert ON subscriptions;
DROP TRIGGER IF EXISTS _recorded_move ON subscriptions;
DROP TRIGGER IF EXISTS _recorded_update ON subscriptions;
DROP TRIGGER IF EXISTS recorded_emptying ON subscriptions;
DROP FUNCTION IF EXISTS record_card(), record_all_deletions(), record_state(), record_update(), record_insert(),
    record_missed_state(bigint, bigint), record_missed_states(), missed_deletions(), missed_states(xid8);
DROP TABLE IF EXISTS subscription_states;
