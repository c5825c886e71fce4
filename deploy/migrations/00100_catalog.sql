-- Stores and what they sell. The platform writes these tables, the service only reads
-- them. Money is in minor units of the store's currency. The bounds keep every cart's total
-- within 64 bits: package cart has the same ones (limits.go).
--
-- Names have translations: a JSON object by language code, such as {"ar": "بطاقة"}, in the row
-- of what they name. A table of translations would need a join in every list of subscriptions,
-- triggers of its own for the notifications, and a second statement for every change of a name.
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

-- A CHECK must not contain a query, so this is a function. It does not fail for any JSON.
CREATE FUNCTION are_translations(texts jsonb, longest integer) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN jsonb_typeof(texts) = 'object' THEN NOT EXISTS (
        SELECT FROM jsonb_each(texts) WHERE key NOT IN ('en', 'ar')
            OR jsonb_typeof(value) <> 'string' OR length(value #>> '{}') NOT BETWEEN 1 AND longest
    ) ELSE false END;

CREATE TABLE products (
    store_id       bigint  NOT NULL REFERENCES stores ON DELETE CASCADE,
    id             bigint  NOT NULL CONSTRAINT product_id_is_positive CHECK (id > 0),
    name           text    NOT NULL CONSTRAINT product_has_a_name CHECK (length(name) BETWEEN 1 AND 500),
    names          jsonb   NOT NULL DEFAULT '{}' CONSTRAINT product_names_are_translations CHECK (are_translations(names, 500)),
    slug           text    NOT NULL CONSTRAINT product_has_a_slug CHECK (length(slug) BETWEEN 1 AND 500),
    type           text    NOT NULL CONSTRAINT product_has_a_type CHECK (length(type) BETWEEN 1 AND 64),
    active         boolean NOT NULL DEFAULT true,
    price          bigint  NOT NULL CONSTRAINT product_price_is_in_range CHECK (price BETWEEN 0 AND 100000000000),
    original_price bigint  NOT NULL CONSTRAINT product_original_price_is_in_range CHECK (original_price BETWEEN price AND 1000000000000),
    stock          bigint  CONSTRAINT product_stock_is_in_range CHECK (stock BETWEEN 0 AND 1000000000000),
    min_quantity   bigint  NOT NULL DEFAULT 1 CONSTRAINT product_min_quantity_is_in_range CHECK (min_quantity BETWEEN 1 AND 1000000),
    max_quantity   bigint  CONSTRAINT product_max_quantity_is_in_range CHECK (max_quantity BETWEEN min_quantity AND 1000000),
    max_per_cart   bigint  CONSTRAINT product_max_per_cart_is_in_range CHECK (max_per_cart BETWEEN min_quantity AND 1000000),
    step           bigint  NOT NULL DEFAULT 1 CONSTRAINT product_step_is_in_range CHECK (step BETWEEN 1 AND 1000000),
    tax_ppm        integer CONSTRAINT product_tax_is_a_share CHECK (tax_ppm BETWEEN 0 AND 1000000),
    image_url      text    CONSTRAINT product_image_has_a_url CHECK (length(image_url) BETWEEN 1 AND 2000),
    image_alt      text    NOT NULL DEFAULT '',
    PRIMARY KEY (store_id, id)
);
COMMENT ON COLUMN products.stock IS 'null: unlimited';
COMMENT ON COLUMN products.max_quantity IS 'of one line; null: no limit of the product''s own';
COMMENT ON COLUMN products.name IS 'in the store''s language';
COMMENT ON COLUMN products.names IS 'by language code, for example {"ar": "…"}; a missing language has the name in products.name';
COMMENT ON COLUMN products.tax_ppm IS 'parts per million; null: the store''s rate; 0: untaxed';
COMMENT ON COLUMN products.max_per_cart IS 'of all lines of the product together; null: no limit';
COMMENT ON COLUMN products.step IS 'the quantity of a line is min_quantity plus a multiple of it';

-- To buy a product with plans, a shopper chooses one. Its price is added to the product's.
CREATE TABLE plans (
    store_id   bigint NOT NULL,
    id         bigint NOT NULL CONSTRAINT plan_id_is_positive CHECK (id > 0),
    product_id bigint NOT NULL,
    duration   text   NOT NULL CONSTRAINT plan_duration_is_known CHECK (duration IN
        ('monthly', 'quarterly', 'semiAnnual', 'annually', 'biennial', 'quinquennial', 'decennial')),
    price      bigint NOT NULL CONSTRAINT plan_price_is_in_range CHECK (price BETWEEN 0 AND 100000000000),
    label      text   CONSTRAINT plan_label_is_short CHECK (length(label) BETWEEN 1 AND 255),
    labels     jsonb  NOT NULL DEFAULT '{}' CONSTRAINT plan_labels_are_translations CHECK (are_translations(labels, 255)),
    PRIMARY KEY (store_id, id),
    FOREIGN KEY (store_id, product_id) REFERENCES products ON DELETE CASCADE,
    CONSTRAINT plan_labels_translate_a_label CHECK (label IS NOT NULL OR labels = '{}')
);
COMMENT ON COLUMN plans.label IS 'shown for the duration, in the store''s language; null: the text of the duration, such as 1 month';
COMMENT ON COLUMN plans.labels IS 'by language code; a missing language has the text in plans.label';
CREATE INDEX ON plans (store_id, product_id);

-- Questions to a shopper who adds a product. The answer is an option if the field has
-- options, otherwise text. A product has at most 25, because their positions are distinct.
CREATE TABLE fields (
    store_id   bigint   NOT NULL,
    product_id bigint   NOT NULL,
    name       text     NOT NULL CONSTRAINT field_has_a_name CHECK (length(name) BETWEEN 1 AND 255),
    required   boolean  NOT NULL DEFAULT false,
    position   smallint NOT NULL CONSTRAINT field_position_is_in_range CHECK (position BETWEEN 0 AND 24),
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
    names      jsonb    NOT NULL DEFAULT '{}' CONSTRAINT option_names_are_translations CHECK (are_translations(names, 500)),
    price      bigint   NOT NULL DEFAULT 0 CONSTRAINT option_price_is_in_range CHECK (price BETWEEN 0 AND 10000000000),
    position   smallint NOT NULL,
    PRIMARY KEY (store_id, product_id, field, code),
    FOREIGN KEY (store_id, product_id, field) REFERENCES fields ON UPDATE CASCADE ON DELETE CASCADE
);
COMMENT ON COLUMN field_options.name IS 'in the store''s language';
COMMENT ON COLUMN field_options.names IS 'by language code, as in products.names';
COMMENT ON COLUMN field_options.price IS 'surcharge on the unit price';

-- The spaces are Unicode's white space characters. With the collation "C", upper() changes
-- only a to z, whatever the database's locale. Package cart has the same normal form
-- (NormalCouponCode).
CREATE TABLE coupons (
    store_id          bigint  NOT NULL REFERENCES stores ON DELETE CASCADE,
    code              text    NOT NULL
        CONSTRAINT coupon_code_is_short CHECK (length(code) BETWEEN 1 AND 64)
        CONSTRAINT coupon_code_is_trimmed CHECK (code = btrim(code, U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000'))
        CONSTRAINT coupon_code_is_normalized CHECK (code IS NFC NORMALIZED)
        CONSTRAINT coupon_code_is_upper_case CHECK (code = upper(code COLLATE "C")),
    rate_ppm          integer CONSTRAINT coupon_rate_is_a_share CHECK (rate_ppm BETWEEN 1 AND 1000000),
    amount            bigint  CONSTRAINT coupon_amount_is_in_range CHECK (amount BETWEEN 1 AND 1000000000000),
    minimum           bigint  NOT NULL DEFAULT 0 CONSTRAINT coupon_minimum_is_in_range CHECK (minimum BETWEEN 0 AND 1000000000000),
    starts_at         timestamptz CONSTRAINT coupon_starts_at_is_a_date CHECK (starts_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'),
    expires_at        timestamptz CONSTRAINT coupon_expires_at_is_a_date CHECK (expires_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'),
    max_uses          integer CONSTRAINT coupon_max_uses_is_in_range CHECK (max_uses BETWEEN 1 AND 1000000),
    max_uses_customer integer CONSTRAINT coupon_max_uses_customer_is_in_range CHECK (max_uses_customer BETWEEN 1 AND 1000000),
    PRIMARY KEY (store_id, code),
    CONSTRAINT coupon_is_a_rate_or_an_amount CHECK (num_nonnulls(rate_ppm, amount) = 1),
    CONSTRAINT coupon_starts_before_it_expires CHECK (starts_at < expires_at)
);
COMMENT ON COLUMN coupons.code IS 'NFC, without spaces around it, A to Z for a to z; other letters as they are';
COMMENT ON COLUMN coupons.rate_ppm IS 'of a percent coupon, in parts per million: 100000 is 10 %; null for a fixed one';
COMMENT ON COLUMN coupons.amount IS 'of a fixed coupon; null for a percent one';
COMMENT ON COLUMN coupons.minimum IS 'subtotal of the lines that can be bought from which it counts';
COMMENT ON COLUMN coupons.starts_at IS 'the first moment at which it counts; null: always';
COMMENT ON COLUMN coupons.expires_at IS 'the first moment at which it no longer counts; null for never';
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

-- One row for each order that used a coupon. The platform's checkout writes it in the
-- transaction that places the order; docs/cart.md has its SQL. The rows do not reference the
-- coupon, because orders remain when it is deleted. They count for a new coupon with the same
-- code too: delete them if it must start from zero.
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
CREATE FUNCTION store_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('commerce', 'store');
    RETURN NULL;
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
    IF (SELECT count(*) FROM (SELECT DISTINCT store_id, product_id FROM changed LIMIT 101) few) > 100 THEN
        PERFORM pg_notify('commerce', 'product *');
    ELSE
        PERFORM pg_notify('commerce', concat_ws(' ', 'product', store_id, product_id))
        FROM (SELECT DISTINCT store_id, product_id FROM changed) products;
    END IF;
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

DO $$
DECLARE
    source record;
BEGIN
    FOR source IN VALUES ('stores'), ('publishable_keys'), ('payment_methods') LOOP
        EXECUTE format('CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON %I '
            'FOR EACH STATEMENT EXECUTE FUNCTION store_changed()', source.column1);
    END LOOP;
    -- An update sends notifications for old and new rows, because it may change keys.
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
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE coupon_uses, coupon_products, coupons, field_options, fields, plans, products, payment_methods, publishable_keys, stores;
DROP FUNCTION store_changed(), product_changed(), product_part_changed(), coupon_changed(), coupon_part_changed(), are_translations(jsonb, integer);
