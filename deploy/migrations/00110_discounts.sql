-- Coupons that apply without a code, and coupons that combine.
--
-- Each statement commits by itself, as in 00104.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '2s'; -- as in 00102

ALTER TABLE coupons ADD COLUMN IF NOT EXISTS automatic boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS combines boolean NOT NULL DEFAULT false, ADD COLUMN IF NOT EXISTS min_quantity bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS name text, ADD COLUMN IF NOT EXISTS names jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN coupons.automatic IS 'true: it applies without its code, which is then only a key';
COMMENT ON COLUMN coupons.combines IS 'true: it applies together with all others that combine';
COMMENT ON COLUMN coupons.min_quantity IS 'pieces that can be bought, and that it applies to';
COMMENT ON COLUMN coupons.name IS 'what shoppers read; null: the code';

ALTER TABLE coupons DROP CONSTRAINT IF EXISTS coupon_min_quantity_is_in_range;
ALTER TABLE coupons ADD CONSTRAINT coupon_min_quantity_is_in_range CHECK (min_quantity BETWEEN 0 AND 10000000) NOT VALID;
ALTER TABLE coupons VALIDATE CONSTRAINT coupon_min_quantity_is_in_range;
ALTER TABLE coupons DROP CONSTRAINT IF EXISTS coupon_name_is_not_empty;
ALTER TABLE coupons ADD CONSTRAINT coupon_name_is_not_empty CHECK (length(name) BETWEEN 1 AND 255) NOT VALID;
ALTER TABLE coupons VALIDATE CONSTRAINT coupon_name_is_not_empty;
ALTER TABLE coupons DROP CONSTRAINT IF EXISTS coupon_names_are_translations;
ALTER TABLE coupons ADD CONSTRAINT coupon_names_are_translations CHECK (are_translations(names, 255)) NOT VALID;
ALTER TABLE coupons VALIDATE CONSTRAINT coupon_names_are_translations;

-- Few coupons are automatic, and each store's are read at once. The build takes milliseconds (205,000 coupons: 50), so writers wait.
CREATE INDEX IF NOT EXISTS automatic_coupons ON coupons (store_id) WHERE automatic;
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
DROP INDEX IF EXISTS automatic_coupons;
ALTER TABLE coupons DROP COLUMN IF EXISTS automatic, DROP COLUMN IF EXISTS combines, DROP COLUMN IF EXISTS min_quantity,
    DROP COLUMN IF EXISTS name, DROP COLUMN IF EXISTS names;
RESET lock_timeout;
