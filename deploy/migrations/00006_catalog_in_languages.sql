-- Names in several languages, and what limits and taxes a product: a maximum per cart,
-- a step of quantities, a tax rate.
--
-- Translations are a JSON object by language code, such as {"ar": "بطاقة"}, in the row of
-- what they name. A table of translations would need a join in every list of
-- subscriptions, triggers of its own for the notifications, and a second statement for
-- every change of a name. A language that is missing falls back to the column with the
-- name in the store's language.
--
-- All columns have defaults, so programs that do not know them keep reading and writing.

-- +goose Up

-- A reader that holds a table for long must not make all others wait behind this. Repeat
-- the migration when it gives up.
SET LOCAL lock_timeout = '2s';

-- A CHECK must not contain a query, so this is a function. It does not fail for any JSON.
CREATE FUNCTION are_translations(texts jsonb, longest integer) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN jsonb_typeof(texts) = 'object' THEN NOT EXISTS (
        SELECT FROM jsonb_each(texts) WHERE key NOT IN ('en', 'ar')
            OR jsonb_typeof(value) <> 'string' OR length(value #>> '{}') NOT BETWEEN 1 AND longest
    ) ELSE false END;

-- The rows of today have the defaults, so no check has to read them. 00008 marks the checks
-- as valid without keeping others out.
ALTER TABLE products
    ADD COLUMN names jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN tax_ppm integer,
    ADD COLUMN max_per_cart bigint,
    ADD COLUMN step bigint NOT NULL DEFAULT 1,
    ADD CONSTRAINT product_names_are_translations CHECK (are_translations(names, 500)) NOT VALID,
    ADD CONSTRAINT product_tax_is_a_share CHECK (tax_ppm BETWEEN 0 AND 1000000) NOT VALID,
    ADD CONSTRAINT product_max_per_cart_is_in_range CHECK (max_per_cart BETWEEN min_quantity AND 1000000) NOT VALID,
    ADD CONSTRAINT product_step_is_in_range CHECK (step BETWEEN 1 AND 1000000) NOT VALID;
COMMENT ON COLUMN products.name IS 'in the store''s language';
COMMENT ON COLUMN products.names IS 'by language code, for example {"ar": "…"}; a missing language has the name in products.name';
COMMENT ON COLUMN products.tax_ppm IS 'parts per million; null: the store''s rate; 0: untaxed';
COMMENT ON COLUMN products.max_per_cart IS 'of all lines of the product together; null: no limit';
COMMENT ON COLUMN products.step IS 'the quantity of a line is min_quantity plus a multiple of it';

ALTER TABLE field_options
    ADD COLUMN names jsonb NOT NULL DEFAULT '{}',
    ADD CONSTRAINT option_names_are_translations CHECK (are_translations(names, 500)) NOT VALID;
COMMENT ON COLUMN field_options.name IS 'in the store''s language';
COMMENT ON COLUMN field_options.names IS 'by language code, as in products.names';

ALTER TABLE plans
    ADD COLUMN label text,
    ADD COLUMN labels jsonb NOT NULL DEFAULT '{}',
    ADD CONSTRAINT plan_label_is_short CHECK (length(label) BETWEEN 1 AND 255) NOT VALID,
    ADD CONSTRAINT plan_labels_are_translations CHECK (are_translations(labels, 255)) NOT VALID,
    ADD CONSTRAINT plan_labels_translate_a_label CHECK (label IS NOT NULL OR labels = '{}') NOT VALID;
COMMENT ON COLUMN plans.label IS 'shown for the duration, in the store''s language; null: the text of the duration, such as 1 month';
COMMENT ON COLUMN plans.labels IS 'by language code; a missing language has the text in plans.label';

-- +goose Down
SET LOCAL lock_timeout = '2s';
ALTER TABLE plans DROP COLUMN label, DROP COLUMN labels;
ALTER TABLE field_options DROP COLUMN names;
ALTER TABLE products DROP COLUMN names, DROP COLUMN tax_ppm, DROP COLUMN max_per_cart, DROP COLUMN step;
COMMENT ON COLUMN field_options.name IS NULL;
COMMENT ON COLUMN products.name IS NULL;
DROP FUNCTION are_translations(jsonb, integer);
