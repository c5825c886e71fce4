-- Bounds that keep every cart total within 64 bits, and a normal form for coupon codes.
-- Package cart has the same bounds (limits.go), from which it computes the highest
-- total, and the same normal form (NormalCouponCode).

-- +goose Up

-- The error of ADD CONSTRAINT would not name the rows that violate the constraint.
-- +goose StatementBegin
DO $$
DECLARE
    beyond record;
BEGIN
    SELECT count(*) AS rows, min(what) AS first INTO beyond FROM (
        SELECT format('product %s of store %s has the price %s', id, store_id, price)
            FROM products WHERE price > 100000000000
        UNION ALL
        SELECT format('plan %s of store %s has the price %s', id, store_id, price)
            FROM plans WHERE price > 100000000000
        UNION ALL
        SELECT format('option %s of product %s of store %s has the price %s', code, product_id, store_id, price)
            FROM field_options WHERE price > 10000000000
        UNION ALL
        SELECT format('product %s of store %s has %s fields', product_id, store_id, count(*))
            FROM fields GROUP BY store_id, product_id HAVING count(*) > 25
    ) rows (what);
    IF beyond.rows > 0 THEN
        RAISE EXCEPTION 'rows beyond the new bounds of prices and fields: %. Change them first, for example: %.', beyond.rows, beyond.first;
    END IF;
END $$;
-- +goose StatementEnd

ALTER TABLE products
    DROP CONSTRAINT product_price_is_in_range,
    ADD CONSTRAINT product_price_is_in_range CHECK (price BETWEEN 0 AND 100000000000);
ALTER TABLE plans
    DROP CONSTRAINT plan_price_is_in_range,
    ADD CONSTRAINT plan_price_is_in_range CHECK (price BETWEEN 0 AND 100000000000);
ALTER TABLE field_options
    DROP CONSTRAINT option_price_is_in_range,
    ADD CONSTRAINT option_price_is_in_range CHECK (price BETWEEN 0 AND 10000000000);

-- A product has at most 25 fields, because their positions are distinct.
UPDATE fields SET position = ranked.place
FROM (
    SELECT store_id, product_id, name,
        row_number() OVER (PARTITION BY store_id, product_id ORDER BY position) - 1 AS place
    FROM fields
) ranked
WHERE (fields.store_id, fields.product_id, fields.name) = (ranked.store_id, ranked.product_id, ranked.name)
    AND fields.position <> ranked.place;
ALTER TABLE fields
    ADD CONSTRAINT field_position_is_in_range CHECK (position BETWEEN 0 AND 24);

-- The spaces are Unicode's white space characters. With the collation "C", upper() changes
-- only a to z, whatever the database's locale.
UPDATE coupons SET code = normal.code
FROM (
    SELECT store_id, code AS given,
        upper(btrim(normalize(code), U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000') COLLATE "C") AS code
    FROM coupons
) normal
WHERE (coupons.store_id, coupons.code) = (normal.store_id, normal.given) AND normal.code <> normal.given;
ALTER TABLE coupons
    DROP CONSTRAINT coupon_code_is_upper_case,
    ADD CONSTRAINT coupon_code_is_short CHECK (length(code) BETWEEN 1 AND 64),
    ADD CONSTRAINT coupon_code_is_trimmed CHECK (code = btrim(code, U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000')),
    ADD CONSTRAINT coupon_code_is_normalized CHECK (code IS NFC NORMALIZED),
    ADD CONSTRAINT coupon_code_is_upper_case CHECK (code = upper(code COLLATE "C"));
COMMENT ON COLUMN coupons.code IS 'NFC, without spaces around it, A to Z for a to z; other letters as they are';
COMMENT ON COLUMN coupons.minimum IS 'subtotal of the lines that can be bought from which it counts';

-- +goose Down
COMMENT ON COLUMN coupons.minimum IS 'subtotal from which it counts';
COMMENT ON COLUMN coupons.code IS NULL;
-- The old constraint depends on the database's locale. Rows that violate it stay.
ALTER TABLE coupons
    DROP CONSTRAINT coupon_code_is_upper_case,
    DROP CONSTRAINT coupon_code_is_normalized,
    DROP CONSTRAINT coupon_code_is_trimmed,
    DROP CONSTRAINT coupon_code_is_short,
    ADD CONSTRAINT coupon_code_is_upper_case CHECK (code = upper(btrim(code)) AND length(code) BETWEEN 1 AND 64) NOT VALID;
ALTER TABLE fields DROP CONSTRAINT field_position_is_in_range;
ALTER TABLE field_options
    DROP CONSTRAINT option_price_is_in_range,
    ADD CONSTRAINT option_price_is_in_range CHECK (price BETWEEN 0 AND 1000000000000);
ALTER TABLE plans
    DROP CONSTRAINT plan_price_is_in_range,
    ADD CONSTRAINT plan_price_is_in_range CHECK (price BETWEEN 0 AND 1000000000000);
ALTER TABLE products
    DROP CONSTRAINT product_price_is_in_range,
    ADD CONSTRAINT product_price_is_in_range CHECK (price BETWEEN 0 AND 1000000000000);
