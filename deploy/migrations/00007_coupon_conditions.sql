-- Coupons can start at a date, apply to some products only, and have limits of uses.
-- The platform's checkout writes coupon_uses in the transaction that places the order;
-- docs/cart.md has its SQL. The service only reads.

-- +goose Up
SET LOCAL lock_timeout = '2s'; -- as in 00006
ALTER TABLE coupons
    ADD COLUMN starts_at timestamptz,
    ADD COLUMN max_uses integer CONSTRAINT coupon_max_uses_is_in_range CHECK (max_uses BETWEEN 1 AND 1000000),
    ADD COLUMN max_uses_customer integer CONSTRAINT coupon_max_uses_customer_is_in_range CHECK (max_uses_customer BETWEEN 1 AND 1000000),
    ADD CONSTRAINT coupon_starts_at_is_a_date CHECK (starts_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'),
    ADD CONSTRAINT coupon_starts_before_it_expires CHECK (starts_at < expires_at);
COMMENT ON COLUMN coupons.rate_ppm IS 'of a percent coupon, in parts per million: 100000 is 10 %; null for a fixed one';
COMMENT ON COLUMN coupons.amount IS 'of a fixed coupon; null for a percent one';
COMMENT ON COLUMN coupons.starts_at IS 'the first moment at which it counts; null: always';
COMMENT ON COLUMN coupons.max_uses IS 'by all customers together; null: no limit';
COMMENT ON COLUMN coupons.max_uses_customer IS 'by each customer; null: no limit. Guests have none';

-- The products that a coupon applies to. A coupon without rows here applies to all.
-- product_id does not reference products: the deletion of a product would delete its row
-- here, and a coupon that loses its last row would apply to all products.
CREATE TABLE coupon_products (
    store_id   bigint NOT NULL,
    code       text   NOT NULL,
    product_id bigint NOT NULL CONSTRAINT coupon_product_id_is_positive CHECK (product_id > 0),
    PRIMARY KEY (store_id, code, product_id),
    FOREIGN KEY (store_id, code) REFERENCES coupons ON UPDATE CASCADE ON DELETE CASCADE
);
COMMENT ON TABLE coupon_products IS 'the products that a coupon applies to; a coupon without rows applies to all';

-- One row for each order that used a coupon. The rows do not reference the coupon, because
-- orders remain when it is deleted. They count for a new coupon with the same code too:
-- delete them if it must start from zero.
CREATE TABLE coupon_uses (
    store_id bigint NOT NULL REFERENCES stores ON DELETE CASCADE,
    code     text   NOT NULL CONSTRAINT use_code_is_normal CHECK (
        length(code) BETWEEN 1 AND 64 AND code IS NFC NORMALIZED AND code = upper(code COLLATE "C")
        AND code = btrim(code, U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000')
    ),
    customer text   CONSTRAINT use_customer_is_short CHECK (length(customer) BETWEEN 1 AND 255),
    order_id bigint NOT NULL CONSTRAINT use_order_id_is_positive CHECK (order_id > 0),
    -- A checkout that is repeated counts once.
    CONSTRAINT use_counts_once_an_order UNIQUE (store_id, order_id, code)
);
COMMENT ON TABLE coupon_uses IS 'one row for each order that used a coupon; rows outlive their coupon';
COMMENT ON COLUMN coupon_uses.code IS 'in the form of coupons.code';
COMMENT ON COLUMN coupon_uses.customer IS 'the sub of the customer''s JWT, unchanged; null: a guest';

-- Postgres counts uses from this index alone: those of all customers or of one, and, for
-- checkout, without those of one order. For that, VACUUM must soon mark the pages of new
-- rows as visible to all.
CREATE INDEX coupon_uses_by_customer ON coupon_uses (store_id, code, customer) INCLUDE (order_id);
ALTER TABLE coupon_uses SET (autovacuum_vacuum_insert_scale_factor = 0.02);

-- +goose StatementBegin
CREATE FUNCTION coupon_part_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM (SELECT DISTINCT store_id, code FROM changed LIMIT 101) few) > 100 THEN
        PERFORM pg_notify('commerce', 'coupon *');
    ELSE
        PERFORM pg_notify('commerce', concat_ws(' ', 'coupon', store_id, code))
        FROM (SELECT DISTINCT store_id, code FROM changed) coupons;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER added AFTER INSERT ON coupon_products REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION coupon_part_changed();
CREATE TRIGGER changed_from AFTER UPDATE ON coupon_products REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION coupon_part_changed();
CREATE TRIGGER changed_to AFTER UPDATE ON coupon_products REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION coupon_part_changed();
CREATE TRIGGER removed AFTER DELETE ON coupon_products REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION coupon_part_changed();

-- +goose Down
SET LOCAL lock_timeout = '2s';

-- A coupon that is written meanwhile must not miss the next statement.
LOCK TABLE coupons, coupon_products IN SHARE ROW EXCLUSIVE MODE;

-- Without the new columns and tables, a coupon with conditions would apply without them:
-- to all products, before its start, without limits. It expires instead. Going up again
-- does not restore it.
UPDATE coupons SET starts_at = NULL, expires_at = now()
WHERE (expires_at IS NULL OR expires_at > now())
    AND (starts_at > now() OR max_uses IS NOT NULL OR max_uses_customer IS NOT NULL
        OR EXISTS (SELECT FROM coupon_products p WHERE (p.store_id, p.code) = (coupons.store_id, coupons.code)));

DROP TABLE coupon_uses, coupon_products;
DROP FUNCTION coupon_part_changed();
COMMENT ON COLUMN coupons.rate_ppm IS NULL;
COMMENT ON COLUMN coupons.amount IS NULL;
ALTER TABLE coupons
    DROP CONSTRAINT coupon_starts_before_it_expires,
    DROP CONSTRAINT coupon_starts_at_is_a_date,
    DROP COLUMN max_uses_customer,
    DROP COLUMN max_uses,
    DROP COLUMN starts_at;
