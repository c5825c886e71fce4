-- Bounds that keep every total of a cart within 64 bits. Package cart has the same
-- ones (limits.go) and computes the highest total from them.

-- +goose Up

-- ADD CONSTRAINT alone would name the rule but not the rows that break it.
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

-- A product has at most 25 fields, since each has a position of its own.
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

-- +goose Down
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
