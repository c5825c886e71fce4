-- The tax of digital goods in the country of the buyer.
--
-- Each statement commits by itself, as in 00104.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '2s'; -- as in 00102

ALTER TABLE stores ADD COLUMN IF NOT EXISTS country text;
COMMENT ON COLUMN stores.country IS 'ISO 3166-1 alpha-2; null: the country of the buyer changes no tax';
ALTER TABLE stores DROP CONSTRAINT IF EXISTS store_country_is_a_code;
ALTER TABLE stores ADD CONSTRAINT store_country_is_a_code CHECK (country ~ '^[A-Z]{2}$') NOT VALID;
ALTER TABLE stores VALIDATE CONSTRAINT store_country_is_a_code;

ALTER TABLE products ADD COLUMN IF NOT EXISTS tax_class text NOT NULL DEFAULT 'standard';
COMMENT ON COLUMN products.tax_class IS 'of tax_rates';
ALTER TABLE products DROP CONSTRAINT IF EXISTS product_tax_class_is_a_word;
ALTER TABLE products ADD CONSTRAINT product_tax_class_is_a_word CHECK (tax_class ~ '^[a-z0-9_-]{1,32}$') NOT VALID;
ALTER TABLE products VALIDATE CONSTRAINT product_tax_class_is_a_word;

CREATE TABLE IF NOT EXISTS tax_rates (
    store_id  bigint  NOT NULL REFERENCES stores ON DELETE CASCADE,
    country   text    NOT NULL CONSTRAINT tax_country_is_a_code CHECK (country ~ '^[A-Z]{2}$'),
    tax_class text    NOT NULL DEFAULT 'standard' CONSTRAINT tax_class_is_a_word CHECK (tax_class ~ '^[a-z0-9_-]{1,32}$'),
    tax_ppm   integer NOT NULL CONSTRAINT tax_rate_is_a_share CHECK (tax_ppm BETWEEN 0 AND 1000000),
    PRIMARY KEY (store_id, country, tax_class)
);
COMMENT ON TABLE tax_rates IS 'of buyers in other countries than the store''s own';

-- A sharded database has no triggers, as 00103 says.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'stores'::regclass AND tgname = 'changed')
        AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'tax_rates'::regclass AND tgname = 'changed')
    THEN
        CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON tax_rates FOR EACH STATEMENT EXECUTE FUNCTION store_changed();
    END IF;
END $$;
-- +goose StatementEnd
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
DROP TABLE IF EXISTS tax_rates;
ALTER TABLE products DROP COLUMN IF EXISTS tax_class;
ALTER TABLE stores DROP COLUMN IF EXISTS country;
RESET lock_timeout;
