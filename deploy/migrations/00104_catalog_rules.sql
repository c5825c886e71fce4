-- Plans that are no longer sold, prices above the original one, and what JSON can carry: ids that
-- JavaScript does not round, and names of fields that are no positions of fields.
--
-- Each statement commits by itself, so that no lock outlives it: a constraint is added without
-- reading the rows, and they are then read while others write. A migration that failed can be
-- repeated.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '2s'; -- as in 00102

-- Constraints that rows break would refuse each later update of these rows.
-- +goose StatementBegin
DO $$
DECLARE
    id record;
    found text;
BEGIN
    FOR id IN VALUES ('stores', 'id'), ('products', 'id'), ('plans', 'id'), ('subscriptions', 'id'), ('subscriptions', 'order_id') LOOP
        EXECUTE format('SELECT %I FROM %I WHERE %1$I > 9007199254740991 LIMIT 1', id.column2, id.column1) INTO found;
        IF found IS NOT NULL THEN
            RAISE EXCEPTION '%.% has the value %: JavaScript rounds numbers above 9007199254740991, so replace it, then repeat the migration',
                id.column1, id.column2, found;
        END IF;
    END LOOP;
    SELECT name FROM fields WHERE name ~ '^\s*[0-9]+\s*$' LIMIT 1 INTO found;
    IF found IS NOT NULL THEN
        RAISE EXCEPTION 'fields.name has the value "%": callers may give positions instead of names, so replace it, then repeat the migration', found;
    END IF;
END $$;
-- +goose StatementEnd

ALTER TABLE stores DROP CONSTRAINT IF EXISTS store_id_is_a_safe_integer;
ALTER TABLE stores ADD CONSTRAINT store_id_is_a_safe_integer CHECK (id <= 9007199254740991) NOT VALID;
ALTER TABLE stores VALIDATE CONSTRAINT store_id_is_a_safe_integer;

ALTER TABLE products DROP CONSTRAINT IF EXISTS product_id_is_a_safe_integer;
ALTER TABLE products ADD CONSTRAINT product_id_is_a_safe_integer CHECK (id <= 9007199254740991) NOT VALID;
ALTER TABLE products VALIDATE CONSTRAINT product_id_is_a_safe_integer;

ALTER TABLE plans DROP CONSTRAINT IF EXISTS plan_id_is_a_safe_integer;
ALTER TABLE plans ADD CONSTRAINT plan_id_is_a_safe_integer CHECK (id <= 9007199254740991) NOT VALID;
ALTER TABLE plans VALIDATE CONSTRAINT plan_id_is_a_safe_integer;

ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_id_is_a_safe_integer;
ALTER TABLE subscriptions ADD CONSTRAINT subscription_id_is_a_safe_integer CHECK (id <= 9007199254740991) NOT VALID;
ALTER TABLE subscriptions VALIDATE CONSTRAINT subscription_id_is_a_safe_integer;

ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_order_is_a_safe_integer;
ALTER TABLE subscriptions ADD CONSTRAINT subscription_order_is_a_safe_integer CHECK (order_id <= 9007199254740991) NOT VALID;
ALTER TABLE subscriptions VALIDATE CONSTRAINT subscription_order_is_a_safe_integer;

ALTER TABLE fields DROP CONSTRAINT IF EXISTS field_name_is_no_position;
ALTER TABLE fields ADD CONSTRAINT field_name_is_no_position CHECK (name !~ '^\s*[0-9]+\s*$') NOT VALID;
ALTER TABLE fields VALIDATE CONSTRAINT field_name_is_no_position;

-- A product whose price is above the original one is shown without a former price.
ALTER TABLE products DROP CONSTRAINT IF EXISTS product_original_price_is_in_range;
ALTER TABLE products ADD CONSTRAINT product_original_price_is_in_range CHECK (original_price BETWEEN 0 AND 1000000000000) NOT VALID;
ALTER TABLE products VALIDATE CONSTRAINT product_original_price_is_in_range;

ALTER TABLE plans ADD COLUMN IF NOT EXISTS active boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN plans.active IS 'false: no longer sold; subscriptions keep it';
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
UPDATE products SET original_price = price WHERE original_price < price;
ALTER TABLE products DROP CONSTRAINT IF EXISTS product_original_price_is_in_range;
ALTER TABLE products ADD CONSTRAINT product_original_price_is_in_range CHECK (original_price BETWEEN price AND 1000000000000) NOT VALID;
ALTER TABLE products VALIDATE CONSTRAINT product_original_price_is_in_range;
ALTER TABLE fields DROP CONSTRAINT IF EXISTS field_name_is_no_position;
ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_order_is_a_safe_integer;
ALTER TABLE subscriptions DROP CONSTRAINT IF EXISTS subscription_id_is_a_safe_integer;
ALTER TABLE plans DROP CONSTRAINT IF EXISTS plan_id_is_a_safe_integer;
ALTER TABLE products DROP CONSTRAINT IF EXISTS product_id_is_a_safe_integer;
ALTER TABLE stores DROP CONSTRAINT IF EXISTS store_id_is_a_safe_integer;
ALTER TABLE plans DROP COLUMN IF EXISTS active; -- last: the service of this schema needs it, if one of the others fails
RESET lock_timeout;
