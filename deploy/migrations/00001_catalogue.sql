-- Stores and what they sell. The platform writes these tables, the service only reads
-- them. Money is in minor units of the store's currency, at most 10^12, so that no
-- cart's total can overflow.
--
-- Changes send notifications on the channel "commerce", for caches:
--   store                  any store, its keys or its payment methods
--   product <store> <id>   that product, its plans or its fields
--   coupon <store> <code>  that coupon
--   product *, coupon *    more than 100 at once

-- +goose Up
CREATE TABLE stores (
    id                 bigint  PRIMARY KEY CONSTRAINT store_id_is_positive CHECK (id > 0),
    name               text    NOT NULL CONSTRAINT store_has_a_name CHECK (length(name) BETWEEN 1 AND 255),
    currency           text    NOT NULL CONSTRAINT store_currency_is_iso_4217 CHECK (currency ~ '^[A-Z]{3}$'),
    language           text    NOT NULL DEFAULT 'en' CONSTRAINT store_language_is_known CHECK (language IN ('en', 'ar')),
    tax_ppm            integer NOT NULL DEFAULT 0 CONSTRAINT store_tax_is_a_share CHECK (tax_ppm BETWEEN 0 AND 1000000),
    prices_include_tax boolean NOT NULL DEFAULT true
);
COMMENT ON COLUMN stores.tax_ppm IS 'parts per million: 150000 is 15 %';

-- The keys that storefronts send as X-Public-Key.
CREATE TABLE publishable_keys (
    key      text   PRIMARY KEY CONSTRAINT key_is_visible_ascii CHECK (key ~ '^[!-~]{1,255}$'),
    store_id bigint NOT NULL REFERENCES stores ON DELETE CASCADE
);
CREATE INDEX ON publishable_keys (store_id);

CREATE TABLE payment_methods (
    store_id bigint   NOT NULL REFERENCES stores ON DELETE CASCADE,
    id       text     NOT NULL CONSTRAINT payment_method_has_an_id CHECK (length(id) BETWEEN 1 AND 64),
    name_en  text     NOT NULL CONSTRAINT payment_method_has_a_name CHECK (length(name_en) BETWEEN 1 AND 255),
    name_ar  text     NOT NULL DEFAULT '',
    icon     text     NOT NULL DEFAULT '',
    enabled  boolean  NOT NULL DEFAULT true,
    position smallint NOT NULL,
    PRIMARY KEY (store_id, id)
);
COMMENT ON COLUMN payment_methods.name_ar IS 'empty: as in English';

-- Revisions only increase and are never reused, not even if a product is deleted and
-- inserted again.
CREATE SEQUENCE catalogue_revision;

CREATE TABLE products (
    store_id       bigint  NOT NULL REFERENCES stores ON DELETE CASCADE,
    id             bigint  NOT NULL CONSTRAINT product_id_is_positive CHECK (id > 0),
    name           text    NOT NULL CONSTRAINT product_has_a_name CHECK (length(name) BETWEEN 1 AND 500),
    slug           text    NOT NULL CONSTRAINT product_has_a_slug CHECK (length(slug) BETWEEN 1 AND 500),
    type           text    NOT NULL CONSTRAINT product_has_a_type CHECK (length(type) BETWEEN 1 AND 64),
    active         boolean NOT NULL DEFAULT true,
    price          bigint  NOT NULL CONSTRAINT product_price_is_in_range CHECK (price BETWEEN 0 AND 1000000000000),
    original_price bigint  NOT NULL CONSTRAINT product_original_price_is_in_range CHECK (original_price BETWEEN price AND 1000000000000),
    stock          bigint  CONSTRAINT product_stock_is_in_range CHECK (stock BETWEEN 0 AND 1000000000000),
    min_quantity   bigint  NOT NULL DEFAULT 1 CONSTRAINT product_min_quantity_is_in_range CHECK (min_quantity BETWEEN 1 AND 1000000),
    max_quantity   bigint  CONSTRAINT product_max_quantity_is_in_range CHECK (max_quantity BETWEEN min_quantity AND 1000000),
    image_url      text    CONSTRAINT product_image_has_a_url CHECK (length(image_url) BETWEEN 1 AND 2000),
    image_alt      text    NOT NULL DEFAULT '',
    revision       bigint  NOT NULL DEFAULT nextval('catalogue_revision'),
    PRIMARY KEY (store_id, id)
);
COMMENT ON COLUMN products.stock IS 'null: unlimited';
COMMENT ON COLUMN products.max_quantity IS 'of one line; null: no limit of the product''s own';
COMMENT ON COLUMN products.revision IS 'another one with each change of the product, its plans or its fields';

-- To buy a product with plans, a shopper chooses one. Its price is added to the product's.
CREATE TABLE plans (
    store_id   bigint NOT NULL,
    id         bigint NOT NULL CONSTRAINT plan_id_is_positive CHECK (id > 0),
    product_id bigint NOT NULL,
    duration   text   NOT NULL CONSTRAINT plan_duration_is_known CHECK (duration IN
        ('monthly', 'quarterly', 'semiAnnual', 'annually', 'biennial', 'quinquennial', 'decennial')),
    price      bigint NOT NULL CONSTRAINT plan_price_is_in_range CHECK (price BETWEEN 0 AND 1000000000000),
    PRIMARY KEY (store_id, id),
    FOREIGN KEY (store_id, product_id) REFERENCES products ON DELETE CASCADE
);
CREATE INDEX ON plans (store_id, product_id);

-- Questions to a shopper who adds a product. The answer is an option if the field has
-- options, otherwise text.
CREATE TABLE fields (
    store_id   bigint   NOT NULL,
    product_id bigint   NOT NULL,
    name       text     NOT NULL CONSTRAINT field_has_a_name CHECK (length(name) BETWEEN 1 AND 255),
    required   boolean  NOT NULL DEFAULT false,
    position   smallint NOT NULL,
    PRIMARY KEY (store_id, product_id, name),
    CONSTRAINT field_has_a_position_of_its_own UNIQUE (store_id, product_id, position) DEFERRABLE,
    FOREIGN KEY (store_id, product_id) REFERENCES products ON DELETE CASCADE
);

CREATE TABLE field_options (
    store_id   bigint   NOT NULL,
    product_id bigint   NOT NULL,
    field      text     NOT NULL,
    code       text     NOT NULL CONSTRAINT option_has_a_code CHECK (length(code) BETWEEN 1 AND 255),
    name       text     NOT NULL CONSTRAINT option_has_a_name CHECK (length(name) BETWEEN 1 AND 255),
    price      bigint   NOT NULL DEFAULT 0 CONSTRAINT option_price_is_in_range CHECK (price BETWEEN 0 AND 1000000000000),
    position   smallint NOT NULL,
    PRIMARY KEY (store_id, product_id, field, code),
    FOREIGN KEY (store_id, product_id, field) REFERENCES fields ON UPDATE CASCADE ON DELETE CASCADE
);
COMMENT ON COLUMN field_options.price IS 'surcharge on the unit price';

CREATE TABLE coupons (
    store_id   bigint  NOT NULL REFERENCES stores ON DELETE CASCADE,
    code       text    NOT NULL CONSTRAINT coupon_code_is_upper_case CHECK (code = upper(btrim(code)) AND length(code) BETWEEN 1 AND 64),
    rate_ppm   integer CONSTRAINT coupon_rate_is_a_share CHECK (rate_ppm BETWEEN 1 AND 1000000),
    amount     bigint  CONSTRAINT coupon_amount_is_in_range CHECK (amount BETWEEN 1 AND 1000000000000),
    minimum    bigint  NOT NULL DEFAULT 0 CONSTRAINT coupon_minimum_is_in_range CHECK (minimum BETWEEN 0 AND 1000000000000),
    expires_at timestamptz,
    PRIMARY KEY (store_id, code),
    CONSTRAINT coupon_is_a_rate_or_an_amount CHECK (num_nonnulls(rate_ppm, amount) = 1)
);
COMMENT ON COLUMN coupons.minimum IS 'subtotal from which it counts';
COMMENT ON COLUMN coupons.expires_at IS 'the first moment at which it no longer counts; null for never';

-- +goose StatementBegin
CREATE FUNCTION store_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('commerce', 'store');
    RETURN NULL;
END $$;

CREATE FUNCTION product_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision := nextval('catalogue_revision');
    RETURN NEW;
END $$;

-- A statement that changes many rows sends only one notification.
CREATE FUNCTION product_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM (SELECT FROM changed LIMIT 101) few) > 100 THEN
        PERFORM pg_notify('commerce', 'product *');
    ELSE
        PERFORM pg_notify('commerce', concat_ws(' ', 'product', store_id, id)) FROM changed;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION product_part_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE products SET revision = DEFAULT
    WHERE (store_id, id) IN (SELECT store_id, product_id FROM changed);
    RETURN NULL;
END $$;

CREATE FUNCTION coupon_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM (SELECT FROM changed LIMIT 101) few) > 100 THEN
        PERFORM pg_notify('commerce', 'coupon *');
    ELSE
        PERFORM pg_notify('commerce', concat_ws(' ', 'coupon', store_id, code)) FROM changed;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER changes BEFORE UPDATE ON products
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION product_changes();

DO $$
DECLARE
    source record;
BEGIN
    FOR source IN VALUES ('stores'), ('publishable_keys'), ('payment_methods') LOOP
        EXECUTE format('CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON %I '
            'FOR EACH STATEMENT EXECUTE FUNCTION store_changed()', source.column1);
    END LOOP;
    -- An update sends notifications for old and new rows, because it may change keys.
    FOR source IN VALUES ('products', 'product_changed'), ('coupons', 'coupon_changed'),
        ('plans', 'product_part_changed'), ('fields', 'product_part_changed'), ('field_options', 'product_part_changed')
    LOOP
        EXECUTE format('
            CREATE TRIGGER added AFTER INSERT ON %1$I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
            CREATE TRIGGER changed_from AFTER UPDATE ON %1$I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
            CREATE TRIGGER changed_to AFTER UPDATE ON %1$I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
            CREATE TRIGGER removed AFTER DELETE ON %1$I REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION %2$I();
        ', source.column1, source.column2);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE coupons, field_options, fields, plans, products, payment_methods, publishable_keys, stores;
DROP FUNCTION store_changed(), product_changes(), product_changed(), product_part_changed(), coupon_changed();
DROP SEQUENCE catalogue_revision;
