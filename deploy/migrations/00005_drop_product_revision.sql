-- Drops products.revision, which nothing reads. A change of a plan, a field or an
-- option used to send its message by updating the revision of its product. It now
-- sends the message itself, and no longer locks the product's row.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION product_part_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM (SELECT DISTINCT store_id, product_id FROM changed LIMIT 101) few) > 100 THEN
        PERFORM pg_notify('commerce', 'product *');
    ELSE
        PERFORM pg_notify('commerce', concat_ws(' ', 'product', store_id, product_id))
        FROM (SELECT DISTINCT store_id, product_id FROM changed) products;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

DROP TRIGGER changes ON products;
DROP FUNCTION product_changes();
ALTER TABLE products DROP COLUMN revision;
DROP SEQUENCE catalogue_revision;

-- +goose Down
CREATE SEQUENCE catalogue_revision;
ALTER TABLE products ADD COLUMN revision bigint NOT NULL DEFAULT nextval('catalogue_revision');
COMMENT ON COLUMN products.revision IS 'another one with each change of the product, its plans or its fields';

-- +goose StatementBegin
CREATE FUNCTION product_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision := nextval('catalogue_revision');
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION product_part_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE products SET revision = DEFAULT
    WHERE (store_id, id) IN (SELECT store_id, product_id FROM changed);
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER changes BEFORE UPDATE ON products
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION product_changes();
