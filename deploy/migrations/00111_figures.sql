-- Figures and histories by transaction: what it leaves counts, not each of its steps. And imports:
-- subscriptions that existed before they were loaded are not new.
--
-- Changes no row, so nobody waits for long.

-- +goose Up
SET LOCAL lock_timeout = '2s'; -- as in 00102

-- +goose StatementBegin
DO $migration$
DECLARE
    schema text := quote_ident(current_schema());
    patch record;
    body text;
BEGIN
    IF to_regclass('subscription_timelines') IS NULL THEN -- as in 00107
        RETURN;
    END IF;
    PERFORM set_config('search_path', schema || ', pg_temp', true);
    LOCK saved_cards IN SHARE ROW EXCLUSIVE MODE;
    LOCK subscription_states IN SHARE UPDATE EXCLUSIVE MODE; -- ends an automatic vacuum
    -- Both locks stop readers. So nobody waits for the second one while the first is held.
    LOOP
        BEGIN
            LOCK subscriptions IN ACCESS EXCLUSIVE MODE;
            LOCK subscription_states IN ACCESS EXCLUSIVE MODE NOWAIT;
            EXIT;
        EXCEPTION WHEN lock_not_available THEN
            IF clock_timestamp() > now() + interval '2 seconds' THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.05);
    END LOOP;

    ALTER TABLE subscriptions ADD COLUMN imported boolean NOT NULL DEFAULT false;
    COMMENT ON COLUMN subscriptions.imported IS 'it existed before it was inserted here, so figures do not count it as new';
    -- Existing rows get this migration's transaction.
    ALTER TABLE subscription_states ADD COLUMN recorded_in xid8 NOT NULL DEFAULT pg_current_xact_id();
    COMMENT ON COLUMN subscription_states.recorded_in IS 'the transaction of the change; means nothing in a database that was restored from a dump';
    COMMENT ON COLUMN subscription_states.was_bearing IS 'of a first row, and of one that an import created: the subscription bears revenue, or did before';

    -- The rules of figures. Package figures compares them with its own. Bodies that are parsed here, without settings,
    -- become a part of the statements that call them, whatever search_path these have.
    CREATE FUNCTION bears_revenue(status text) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
        RETURN status IN ('active', 'past_due');
    CREATE FUNCTION bore_revenue(status text, ends_at timestamptz, trial_ends_at timestamptz) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
        RETURN bears_revenue(status) OR status <> 'trialing' AND coalesce(ends_at > trial_ends_at, true); -- paid for longer than the trial
    CREATE FUNCTION months_of(duration text) RETURNS integer IMMUTABLE PARALLEL SAFE LANGUAGE sql
        RETURN CASE duration WHEN 'monthly' THEN 1 WHEN 'quarterly' THEN 3 WHEN 'semiAnnual' THEN 6 WHEN 'annually' THEN 12
            WHEN 'biennial' THEN 24 WHEN 'quinquennial' THEN 60 WHEN 'decennial' THEN 120 END;
    GRANT EXECUTE ON FUNCTION bears_revenue(text), bore_revenue(text, timestamptz, timestamptz), months_of(text) TO PUBLIC;

    -- The functions of 00107 use that rule, and record imports. The transaction of a missed state is the present one.
    FOR patch IN VALUES
        ('missed_states', 's.current_period_end
        FROM', 's.current_period_end, pg_current_xact_id()
        FROM'),
        ('missed_states', $$latest.number IS NULL
                AND (s.status IN ('active', 'past_due') OR s.status <> 'trialing' AND coalesce(s.ends_at > s.trial_ends_at, true))$$,
            $$(latest.number IS NULL OR latest.status IS NULL AND s.imported)
                AND bore_revenue(s.status, s.ends_at, s.trial_ends_at)$$),
        ('record_insert', 'false, false, NEW.status', 'false, NEW.imported AND ' || schema || '.bore_revenue(NEW.status, NEW.ends_at, NEW.trial_ends_at), NEW.status'),
        ('record_state', $$begins AND (NEW.status IN ('active', 'past_due') OR NEW.status <> 'trialing' AND coalesce(NEW.ends_at > NEW.trial_ends_at, true))$$,
            $$(begins OR TG_OP = 'INSERT' AND NEW.imported) AND bore_revenue(NEW.status, NEW.ends_at, NEW.trial_ends_at)$$),
        ('record_state', '            -- All rows, since a prune may move the card from one to another at the same time.
            UPDATE subscription_states SET card_last_four = NULL, card_scheme = NULL
            WHERE store_id = OLD.store_id AND subscription_id = OLD.id;
', ''),
        -- A move is like an insertion: an older snapshot does not see that others deleted what had the new ID.
        ('record_state', $$IF TG_OP = 'UPDATE' OR current$$, $$IF TG_OP = 'UPDATE' AND (OLD.store_id, OLD.id) = (NEW.store_id, NEW.id) OR current$$),
        ('record_all_deletions', 'INSERT', 'PERFORM set_config(''commerce.emptying'', ''on'', true); -- see the trigger removed
        INSERT'),
        ('record_all_deletions', 'RETURN NULL', 'PERFORM set_config(''commerce.emptying'', '''', true);
        RETURN NULL')
    LOOP
        body := pg_get_functiondef(patch.column1::regproc);
        IF position(patch.column2 IN body) = 0 THEN
            RAISE 'the function % is not that of 00107: it lacks %', patch.column1, patch.column2;
        END IF;
        EXECUTE replace(body, patch.column2, patch.column3);
    END LOOP;

    CREATE FUNCTION mark_import() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        NEW.imported := true;
        RETURN NEW;
    END $$;

    -- Makes one state of those that this transaction has recorded of a subscription, or none if it is as it was
    -- before.
    CREATE FUNCTION settle_state(store bigint, subscription bigint) RETURNS void
        SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off LANGUAGE plpgsql AS $$
    DECLARE
        state subscription_states;
        kept subscription_states; -- the newest one of this transaction
        oldest subscription_states; -- of this transaction
        before subscription_states;
        known subscription_states; -- the newest one before that has a card
        moves boolean := true;
        bore boolean := false;
    BEGIN
        FOR state IN SELECT * FROM subscription_states WHERE store_id = store AND subscription_id = subscription ORDER BY number DESC LOOP
            IF state.first OR state.recorded_in <> pg_current_xact_id() OR state.recorded_at < now() THEN
                before := state;
                EXIT;
            END IF;
            oldest := state;
            IF kept.number IS NULL THEN
                kept := state;
                CONTINUE;
            ELSIF kept.card_last_four IS NULL AND kept.status IS NOT NULL THEN
                kept.card_last_four := state.card_last_four;
                kept.card_scheme := state.card_scheme;
            END IF;
            DELETE FROM subscription_states WHERE store_id = store AND subscription_id = subscription AND number = state.number;
        END LOOP;
        IF kept.number IS NULL THEN
            RETURN;
        ELSIF before.status IS NOT NULL AND oldest.card_last_four IS NOT NULL AND current_setting('transaction_isolation') <> 'read committed' THEN
            -- If it was inserted, others have deleted what this older snapshot sees. So nothing is compared with that.
            bore := oldest.was_bearing;
        ELSIF before.status IS NULL AND kept.status IS NULL THEN -- nobody saw it
            DELETE FROM subscription_states WHERE store_id = store AND subscription_id = subscription AND number = kept.number;
            RETURN;
        ELSIF before.status IS NULL THEN
            SELECT imported AND bore_revenue(kept.status, ends_at, trial_ends_at) INTO bore
            FROM subscriptions WHERE store_id = store AND id = subscription;
            bore := coalesce(bore, false); -- a trigger of the platform may have deleted it
        ELSIF kept.status IS NOT NULL THEN
            SELECT * INTO known FROM subscription_states
            WHERE store_id = store AND subscription_id = subscription AND number <= before.number AND card_last_four IS NOT NULL
            ORDER BY number DESC LIMIT 1;
            moves := (before.status, before.price_amount, before.currency, before.duration) <> (kept.status, kept.price_amount, kept.currency, kept.duration);
            IF NOT moves AND (before.variant_id, before.cancel_at_period_end, before.period_start, before.period_end)
                    = (kept.variant_id, kept.cancel_at_period_end, kept.period_start, kept.period_end)
                AND (kept.card_last_four IS NULL OR (kept.card_last_four, kept.card_scheme) = (coalesce(known.card_last_four, ''), coalesce(known.card_scheme, '')))
            THEN
                DELETE FROM subscription_states WHERE store_id = store AND subscription_id = subscription AND number = kept.number;
                RETURN;
            END IF;
        END IF;
        UPDATE subscription_states
        SET was_bearing = bore, moves_revenue = moves, card_last_four = kept.card_last_four, card_scheme = kept.card_scheme
        WHERE store_id = store AND subscription_id = subscription AND number = kept.number
            AND (was_bearing, moves_revenue, card_last_four, card_scheme) IS DISTINCT FROM (bore, moves, kept.card_last_four, kept.card_scheme);
    END $$;

    -- An insert cannot see whether this transaction deleted the same ID before, without reading states: so a deletion leaves
    -- a note before its statement, which may insert, too, goes on.
    CREATE FUNCTION note_removal() RETURNS trigger SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM set_config('commerce.removed_in', pg_current_xact_id()::text, true);
        IF TG_OP = 'DELETE' THEN
            RETURN OLD;
        END IF;
        RETURN NEW;
    END $$;

    -- Runs after the states were recorded.
    CREATE FUNCTION settle() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'TRUNCATE' THEN
            PERFORM settle_state(store_id, subscription_id) FROM (
                SELECT store_id, subscription_id FROM subscription_states WHERE recorded_in = pg_current_xact_id()
                GROUP BY store_id, subscription_id HAVING count(*) > 1) several;
            PERFORM set_config('commerce.removed_in', pg_current_xact_id()::text, true);
        ELSIF TG_OP <> 'INSERT' AND OLD.changed_in = pg_current_xact_id() THEN
            PERFORM settle_state(OLD.store_id, OLD.id);
        END IF;
        IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND (OLD.store_id, OLD.id) <> (NEW.store_id, NEW.id) THEN
            PERFORM settle_state(NEW.store_id, NEW.id);
        END IF;
        RETURN NULL;
    END $$;

    CREATE FUNCTION settle_card() RETURNS trigger SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM settle_state(store_id, id) FROM subscriptions
        WHERE store_id = NEW.store_id AND customer_id = NEW.customer_id AND saved_card_id = NEW.id ORDER BY id; -- as in stamp_card
        RETURN NULL;
    END $$;

    -- Runs at the end of a transaction that deleted a subscription. One that inserted it again has replaced it.
    CREATE FUNCTION remove_cards() RETURNS trigger
        SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off LANGUAGE plpgsql AS $$
    BEGIN
        -- All rows, since a prune may move the card from one to another at the same time.
        UPDATE subscription_states SET card_last_four = NULL, card_scheme = NULL
        WHERE store_id = NEW.store_id AND subscription_id = NEW.subscription_id
            AND NOT EXISTS (SELECT FROM subscriptions WHERE store_id = NEW.store_id AND id = NEW.subscription_id);
        RETURN NULL;
    END $$;

    CREATE TRIGGER import BEFORE INSERT ON subscriptions FOR EACH ROW
        WHEN (nullif(current_setting('commerce.import', true), '')::boolean) EXECUTE FUNCTION mark_import();
    CREATE TRIGGER removal BEFORE DELETE OR UPDATE OF store_id, id ON subscriptions FOR EACH ROW EXECUTE FUNCTION note_removal();
    CREATE TRIGGER _settled AFTER DELETE ON subscriptions FOR EACH ROW EXECUTE FUNCTION settle();
    CREATE TRIGGER _settled_insert AFTER INSERT ON subscriptions FOR EACH ROW
        WHEN (current_setting('commerce.removed_in', true) = NEW.changed_in::text) EXECUTE FUNCTION settle();
    CREATE TRIGGER _settled_update AFTER UPDATE ON subscriptions FOR EACH ROW
        WHEN (OLD.changed_in = NEW.changed_in OR (OLD.store_id, OLD.id) <> (NEW.store_id, NEW.id)) EXECUTE FUNCTION settle();
    CREATE TRIGGER stamp_settled AFTER UPDATE ON saved_cards
        FOR EACH ROW WHEN ((OLD.last_four, OLD.scheme) <> (NEW.last_four, NEW.scheme)) EXECUTE FUNCTION settle_card();
    CREATE TRIGGER settled_emptying BEFORE TRUNCATE ON subscriptions FOR EACH STATEMENT EXECUTE FUNCTION settle();
    -- Not for a TRUNCATE, which has removed the cards: it may empty this table, too, which has no rows for triggers then.
    CREATE CONSTRAINT TRIGGER removed AFTER INSERT ON subscription_states DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.status IS NULL AND current_setting('commerce.emptying', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION remove_cards();
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER import;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER removal;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _settled;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _settled_insert;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER _settled_update;
    ALTER TABLE subscriptions ENABLE ALWAYS TRIGGER settled_emptying;
    ALTER TABLE saved_cards ENABLE ALWAYS TRIGGER stamp_settled;
    ALTER TABLE subscription_states ENABLE ALWAYS TRIGGER removed;
    REVOKE EXECUTE ON FUNCTION remove_cards(), settle(), settle_card(), settle_state(bigint, bigint) FROM PUBLIC;
END $migration$;
-- +goose StatementEnd

-- +goose Down
SET LOCAL lock_timeout = '2s';
SET LOCAL check_function_bodies = off; -- until the columns are gone

-- +goose StatementBegin
DO $migration$
DECLARE
    patch record;
BEGIN
    IF to_regclass('subscription_timelines') IS NULL THEN
        RETURN;
    END IF;
    LOCK saved_cards, subscriptions IN ACCESS EXCLUSIVE MODE;
    DROP TRIGGER import ON subscriptions;
    DROP TRIGGER removal ON subscriptions;
    DROP TRIGGER _settled ON subscriptions;
    DROP TRIGGER _settled_insert ON subscriptions;
    DROP TRIGGER _settled_update ON subscriptions;
    DROP TRIGGER settled_emptying ON subscriptions;
    DROP TRIGGER stamp_settled ON saved_cards;
    DROP TRIGGER removed ON subscription_states;
    DROP FUNCTION remove_cards(), settle(), settle_card(), settle_state(bigint, bigint), note_removal(), mark_import();
    FOR patch IN VALUES
        ('missed_states', $$(latest.number IS NULL OR latest.status IS NULL AND s.imported)
                AND bore_revenue(s.status, s.ends_at, s.trial_ends_at)$$,
            $$latest.number IS NULL
                AND (s.status IN ('active', 'past_due') OR s.status <> 'trialing' AND coalesce(s.ends_at > s.trial_ends_at, true))$$),
        ('missed_states', ', pg_current_xact_id()', ''),
        ('record_insert', 'NEW.imported AND ' || quote_ident(current_schema()) || '.bore_revenue(NEW.status, NEW.ends_at, NEW.trial_ends_at)', 'false'),
        ('record_state', $$(begins OR TG_OP = 'INSERT' AND NEW.imported) AND bore_revenue(NEW.status, NEW.ends_at, NEW.trial_ends_at)$$,
            $$begins AND (NEW.status IN ('active', 'past_due') OR NEW.status <> 'trialing' AND coalesce(NEW.ends_at > NEW.trial_ends_at, true))$$),
        ('record_state', $$IF TG_OP = 'UPDATE' AND (OLD.store_id, OLD.id) = (NEW.store_id, NEW.id) OR current$$, $$IF TG_OP = 'UPDATE' OR current$$),
        ('record_state', '            INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing)
            VALUES (OLD.store_id', '            -- All rows, since a prune may move the card from one to another at the same time.
            UPDATE subscription_states SET card_last_four = NULL, card_scheme = NULL
            WHERE store_id = OLD.store_id AND subscription_id = OLD.id;
            INSERT INTO subscription_states (store_id, subscription_id, recorded_at, first, was_bearing)
            VALUES (OLD.store_id'),
        ('record_all_deletions', 'PERFORM set_config(''commerce.emptying'', ''on'', true); -- see the trigger removed
        ', ''),
        ('record_all_deletions', 'PERFORM set_config(''commerce.emptying'', '''', true);
        ', '')
    LOOP
        EXECUTE replace(pg_get_functiondef(patch.column1::regproc), patch.column2, patch.column3);
    END LOOP;
    DROP FUNCTION bore_revenue(text, timestamptz, timestamptz), bears_revenue(text), months_of(text);
    ALTER TABLE subscription_states DROP COLUMN recorded_in;
    ALTER TABLE subscriptions DROP COLUMN imported;
END $migration$;
-- +goose StatementEnd
