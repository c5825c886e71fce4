-- Bounds of subscriptions, customer look-ups that do not depend on the database's
-- locale, a second key for page links, and more frequent vacuums of subscriptions.
--
-- The new constraints are checked for every row that is written from now on. If all
-- existing rows satisfy a constraint, it is marked as valid. Otherwise it stays NOT
-- VALID and the migration still succeeds; docs/operations.md says how to find the rows.
--
-- This migration rewrites customers and reads subscriptions once. The tables that it
-- alters stay locked until it commits.

-- +goose Up

-- A list that skips rows needs only an index, as long as the pages of the rows are
-- marked as visible to all. An update removes that mark, and VACUUM sets it again: with
-- these settings after 2 % of the rows have changed, instead of 20 %. Free space on each
-- page allows an update to store the new row on the same page, without new index entries.
ALTER TABLE subscriptions SET (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02
);

COMMENT ON COLUMN subscriptions.metadata IS 'an object of at most 16 KiB, as text';

-- Every time is finite and in the years 1 to 9999.
ALTER TABLE subscriptions
    ADD CONSTRAINT subscription_metadata_is_short CHECK (octet_length(metadata::text) <= 16384) NOT VALID,
    ADD CONSTRAINT subscription_external_customer_is_short CHECK (length(external_customer_id) <= 255) NOT VALID,
    ADD CONSTRAINT subscription_starts_at_is_a_date CHECK (starts_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_ends_at_is_a_date CHECK (ends_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_current_period_start_is_a_date CHECK (current_period_start BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_current_period_end_is_a_date CHECK (current_period_end BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_trial_ends_at_is_a_date CHECK (trial_ends_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_canceled_at_is_a_date CHECK (canceled_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_paused_at_is_a_date CHECK (paused_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_next_retry_at_is_a_date CHECK (next_retry_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_grace_ends_at_is_a_date CHECK (grace_ends_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_created_at_is_a_date CHECK (created_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT subscription_updated_at_is_a_date CHECK (updated_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID;
ALTER TABLE api_tokens
    ADD CONSTRAINT api_token_created_at_is_a_date CHECK (created_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT api_token_revoked_at_is_a_date CHECK (revoked_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID,
    ADD CONSTRAINT api_token_last_used_at_is_a_date CHECK (last_used_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID;
ALTER TABLE coupons
    ADD CONSTRAINT coupon_expires_at_is_a_date CHECK (expires_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00') NOT VALID;

-- +goose StatementBegin
DO $$
DECLARE
    rule record;
BEGIN
    FOR rule IN SELECT conrelid::regclass AS of, conname AS name FROM pg_constraint WHERE NOT convalidated
        AND conrelid IN ('subscriptions'::regclass, 'api_tokens'::regclass, 'coupons'::regclass)
    LOOP
        BEGIN
            EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT %I', rule.of, rule.name);
        EXCEPTION WHEN check_violation THEN
            RAISE WARNING '% stays NOT VALID: rows of % break it', rule.name, rule.of;
        END;
    END LOOP;
END $$;
-- +goose StatementEnd

-- The digits of a phone number, including Arabic digits of both Unicode blocks. All other
-- characters are dropped, such as invisible ones in pasted text.
CREATE FUNCTION phone_digits(phone text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN regexp_replace(translate(phone, '٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹', '01234567890123456789'), '[^0-9]', '', 'g');

ALTER TABLE customers DROP COLUMN national_phone;
ALTER TABLE customers
    ADD COLUMN national_phone text COLLATE "C" GENERATED ALWAYS AS (
        ltrim(CASE
            WHEN phone ~ '^[^0-9٠-٩۰-۹]*\+' OR phone_digits(phone) LIKE '00%'
                THEN regexp_replace(ltrim(phone_digits(phone), '0'), '^' || calling_code, '')
            ELSE phone_digits(phone)
        END, '0')
    ) STORED,
    ADD COLUMN uncoded_phone text COLLATE "C" GENERATED ALWAYS AS (
        nullif(ltrim(substring(ltrim(phone_digits(phone), '0') FROM '^' || nullif(calling_code, '') || '(.*)$'), '0'), '')
    ) STORED;
COMMENT ON COLUMN customers.national_phone IS
    'digits within the country: without leading zeros, and without the calling code where the number is written as an international one';
COMMENT ON COLUMN customers.uncoded_phone IS
    'digits within the country if the number begins with the calling code, with or without a plus sign; null: it does not';
CREATE INDEX customers_by_national_phone ON customers (store_id, national_phone);
CREATE INDEX customers_by_uncoded_phone ON customers (store_id, uncoded_phone);

-- lower(email) depends on the database's locale: in Turkish, I becomes ı. This collation
-- is the same in every database.
DROP INDEX customers_store_id_lower_idx;
CREATE INDEX customers_by_email ON customers (store_id, (lower(email COLLATE "und-x-icu") COLLATE "C"));

-- To rotate the key:
--	UPDATE page_link_key SET key = uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
-- Links signed with the previous key stay valid until the next rotation, because not all
-- instances read the new key at the same time.
ALTER TABLE page_link_key
    ADD COLUMN previous bytea CONSTRAINT page_link_key_previous_is_256_bits CHECK (octet_length(previous) = 32);
COMMENT ON COLUMN page_link_key.previous IS 'links signed with it are accepted; set to null to refuse them';
-- +goose StatementBegin
CREATE FUNCTION page_link_key_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.previous := OLD.key;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER changes BEFORE UPDATE ON page_link_key
    FOR EACH ROW WHEN (OLD.key <> NEW.key) EXECUTE FUNCTION page_link_key_changes();

-- +goose Down
DROP TRIGGER changes ON page_link_key;
DROP FUNCTION page_link_key_changes();
ALTER TABLE page_link_key DROP COLUMN previous;

DROP INDEX customers_by_email;
CREATE INDEX ON customers (store_id, lower(email));

ALTER TABLE customers DROP COLUMN national_phone, DROP COLUMN uncoded_phone;
DROP FUNCTION phone_digits(text);
ALTER TABLE customers ADD COLUMN national_phone text GENERATED ALWAYS AS (
    ltrim(CASE
        WHEN phone ~ '^ *(\+|00)' THEN
            regexp_replace(ltrim(regexp_replace(phone, '[^0-9]', '', 'g'), '0'), '^' || calling_code, '')
        ELSE regexp_replace(phone, '[^0-9]', '', 'g')
    END, '0')
) STORED;
COMMENT ON COLUMN customers.national_phone IS
    'digits within the country: without leading zeros, and without the calling code where the number is written as an international one';
CREATE INDEX ON customers (store_id, national_phone);

ALTER TABLE coupons
    DROP CONSTRAINT coupon_expires_at_is_a_date;
ALTER TABLE api_tokens
    DROP CONSTRAINT api_token_created_at_is_a_date,
    DROP CONSTRAINT api_token_revoked_at_is_a_date,
    DROP CONSTRAINT api_token_last_used_at_is_a_date;
ALTER TABLE subscriptions
    DROP CONSTRAINT subscription_metadata_is_short,
    DROP CONSTRAINT subscription_external_customer_is_short,
    DROP CONSTRAINT subscription_starts_at_is_a_date,
    DROP CONSTRAINT subscription_ends_at_is_a_date,
    DROP CONSTRAINT subscription_current_period_start_is_a_date,
    DROP CONSTRAINT subscription_current_period_end_is_a_date,
    DROP CONSTRAINT subscription_trial_ends_at_is_a_date,
    DROP CONSTRAINT subscription_canceled_at_is_a_date,
    DROP CONSTRAINT subscription_paused_at_is_a_date,
    DROP CONSTRAINT subscription_next_retry_at_is_a_date,
    DROP CONSTRAINT subscription_grace_ends_at_is_a_date,
    DROP CONSTRAINT subscription_created_at_is_a_date,
    DROP CONSTRAINT subscription_updated_at_is_a_date;
COMMENT ON COLUMN subscriptions.metadata IS NULL;
ALTER TABLE subscriptions RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
