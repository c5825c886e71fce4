-- Where a store's shop is: the host by which agents find it, and the page that opens a cart which
-- was handed over.
--
-- Each statement commits by itself, as in 00104.

-- +goose NO TRANSACTION
-- +goose Up
SET lock_timeout = '2s'; -- as in 00102

ALTER TABLE stores ADD COLUMN IF NOT EXISTS host text;
ALTER TABLE stores ADD COLUMN IF NOT EXISTS cart_url text;
COMMENT ON COLUMN stores.host IS 'of the storefront, in lower case, without a port; null: agents do not find the store by its host';
COMMENT ON COLUMN stores.cart_url IS 'of the page that opens a cart which was handed over; null: none';

ALTER TABLE stores DROP CONSTRAINT IF EXISTS store_host_is_a_host_in_lower_case;
ALTER TABLE stores ADD CONSTRAINT store_host_is_a_host_in_lower_case
    CHECK (host ~ '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$') NOT VALID;
ALTER TABLE stores VALIDATE CONSTRAINT store_host_is_a_host_in_lower_case;

-- The code of a hand-over follows as the fragment.
ALTER TABLE stores DROP CONSTRAINT IF EXISTS store_cart_url_is_https_without_a_fragment;
ALTER TABLE stores ADD CONSTRAINT store_cart_url_is_https_without_a_fragment
    CHECK (length(cart_url) <= 2000 AND cart_url ~ '^[!-~]*$'
        AND cart_url ~ '^(https://[^/?#@[:space:]]+|http://(localhost|127[.]0[.]0[.]1|\[::1\])(:[0-9]+)?)([/?][^#[:space:]]*)?$') NOT VALID;
ALTER TABLE stores VALIDATE CONSTRAINT store_cart_url_is_https_without_a_fragment;

-- Stores are few, so this locks them only for a moment.
ALTER TABLE stores DROP CONSTRAINT IF EXISTS store_host_is_its_own;
ALTER TABLE stores ADD CONSTRAINT store_host_is_its_own UNIQUE (host);
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '2s';
ALTER TABLE stores DROP COLUMN IF EXISTS host;
ALTER TABLE stores DROP COLUMN IF EXISTS cart_url;
RESET lock_timeout;
