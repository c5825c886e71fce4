-- Removes what Citus refuses, in a database that `commerce migrate up --sharded` creates. Such
-- a database has no changes of subscriptions (00102). In all other databases this migration does
-- nothing.
--
-- Citus refuses triggers on every table that it distributes or copies. So a sharded database
-- sends no notifications, and a new key of page links does not keep the old one.
--
-- Citus refuses foreign keys with store_id if they have ON UPDATE CASCADE or ON DELETE SET NULL,
-- even if these write only other columns. The platform then changes these columns itself:
-- docs/scale.md says how.

-- +goose Up
SET LOCAL lock_timeout = '2s'; -- as in 00102

-- +goose StatementBegin
DO $$
DECLARE
    refused record;
BEGIN
    IF to_regclass('subscription_timelines') IS NOT NULL THEN
        RETURN;
    END IF;

    FOR refused IN SELECT tgrelid::regclass AS relation, tgname AS name FROM pg_trigger JOIN pg_proc f ON f.oid = tgfoid
        WHERE f.pronamespace = current_schema()::regnamespace AND NOT tgisinternal
            AND f.proname IN ('store_changed', 'product_changed', 'product_part_changed', 'coupon_changed',
                'coupon_part_changed', 'page_link_key_changes')
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', refused.name, refused.relation);
    END LOOP;

    ALTER TABLE field_options
        DROP CONSTRAINT field_options_store_id_product_id_field_fkey,
        ADD CONSTRAINT field_options_store_id_product_id_field_fkey
            FOREIGN KEY (store_id, product_id, field) REFERENCES fields ON DELETE CASCADE;
    ALTER TABLE coupon_products
        DROP CONSTRAINT coupon_products_store_id_code_fkey,
        ADD CONSTRAINT coupon_products_store_id_code_fkey
            FOREIGN KEY (store_id, code) REFERENCES coupons ON DELETE CASCADE;
    -- Deferred, so that a transaction can change the customer's code and its copies.
    ALTER TABLE subscriptions
        DROP CONSTRAINT subscriptions_store_id_customer_id_calling_code_fkey,
        ADD CONSTRAINT subscriptions_store_id_customer_id_calling_code_fkey
            FOREIGN KEY (store_id, customer_id, calling_code) REFERENCES customers (store_id, id, calling_code)
            DEFERRABLE INITIALLY DEFERRED,
        DROP CONSTRAINT subscription_card_is_its_customers,
        ADD CONSTRAINT subscription_card_is_its_customers
            FOREIGN KEY (store_id, customer_id, saved_card_id) REFERENCES saved_cards (store_id, customer_id, id);
END $$;
-- +goose StatementEnd

-- +goose Down
SET LOCAL lock_timeout = '2s';

-- +goose StatementBegin
DO $$
DECLARE
    source record;
BEGIN
    IF to_regclass('subscription_timelines') IS NOT NULL THEN
        RETURN;
    END IF;

    ALTER TABLE subscriptions
        DROP CONSTRAINT subscription_card_is_its_customers,
        ADD CONSTRAINT subscription_card_is_its_customers
            FOREIGN KEY (store_id, customer_id, saved_card_id) REFERENCES saved_cards (store_id, customer_id, id)
            ON DELETE SET NULL (saved_card_id),
        DROP CONSTRAINT subscriptions_store_id_customer_id_calling_code_fkey,
        ADD CONSTRAINT subscriptions_store_id_customer_id_calling_code_fkey
            FOREIGN KEY (store_id, customer_id, calling_code) REFERENCES customers (store_id, id, calling_code)
            ON UPDATE CASCADE;
    ALTER TABLE coupon_products
        DROP CONSTRAINT coupon_products_store_id_code_fkey,
        ADD CONSTRAINT coupon_products_store_id_code_fkey
            FOREIGN KEY (store_id, code) REFERENCES coupons ON UPDATE CASCADE ON DELETE CASCADE;
    ALTER TABLE field_options
        DROP CONSTRAINT field_options_store_id_product_id_field_fkey,
        ADD CONSTRAINT field_options_store_id_product_id_field_fkey
            FOREIGN KEY (store_id, product_id, field) REFERENCES fields ON UPDATE CASCADE ON DELETE CASCADE;

    -- As in 00100 and 00101.
    FOR source IN VALUES ('stores'), ('publishable_keys'), ('payment_methods') LOOP
        EXECUTE format('CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON %I '
            'FOR EACH STATEMENT EXECUTE FUNCTION store_changed()', source.column1);
    END LOOP;
    FOR source IN VALUES ('products', 'product_changed'), ('plans', 'product_part_changed'), ('fields', 'product_part_changed'),
        ('field_options', 'product_part_changed'), ('coupons', 'coupon_changed'), ('coupon_products', 'coupon_part_changed')
    LOOP
        EXECUTE format('
            CREATE TRIGGER added AFTER INSERT ON %1$I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
            CREATE TRIGGER changed_from AFTER UPDATE ON %1$I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
            CREATE TRIGGER changed_to AFTER UPDATE ON %1$I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
            CREATE TRIGGER removed AFTER DELETE ON %1$I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
        ', source.column1, source.column2);
    END LOOP;
    CREATE TRIGGER changes BEFORE UPDATE ON page_link_key
        FOR EACH ROW WHEN (OLD.key <> NEW.key) EXECUTE FUNCTION page_link_key_changes();
END $$;
-- +goose StatementEnd
