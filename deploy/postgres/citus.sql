-- Shards the tables by store with Citus, on Postgres 15 or later. It follows the source of Citus as
-- of May 2026. docs/scale.md has all steps, and what a sharded database lacks.
--
-- Run it once, on the coordinator, as the owner of the tables, after the workers were added and
-- `commerce migrate up --sharded` has created the tables:
--
--	psql "$OWNER_URL" -v ON_ERROR_STOP=1 --single-transaction -f deploy/postgres/citus.sql
--
-- A table comes after the tables that its foreign keys reference. A test compares the tables and
-- their constraints with this file.

-- Without this, the first of these tables would turn all tables that reference it into local ones
-- of Citus, if the coordinator was added. Citus cannot distribute those: they have identity columns,
-- and foreign keys to each other.
SET citus.enable_local_reference_table_foreign_keys = off;

-- Everything is one transaction. In another mode, Citus would refuse a table that references stores,
-- after one that does not.
SET citus.multi_shard_modify_mode = 'sequential';

-- Every node has a copy of these tables. They have few rows per store. Requests read some of
-- them before the store is known: by a public key, or by the id of an API token.
SELECT create_reference_table('stores');
SELECT create_reference_table('publishable_keys');
SELECT create_reference_table('payment_methods');
SELECT create_reference_table('tax_rates');
SELECT create_reference_table('api_tokens');
SELECT create_reference_table('page_link_key');

-- All rows of a store are on one worker. The number of shards cannot be changed without moving
-- all rows, so it is higher than the number of workers. Foreign keys and joins need the same
-- colocation.
SELECT create_distributed_table('products', 'store_id', colocate_with => 'none', shard_count => 64);
SELECT create_distributed_table('plans', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('fields', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('field_options', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('coupons', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('coupon_products', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('coupon_uses', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('customers', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('saved_cards', 'store_id', colocate_with => 'products');
SELECT create_distributed_table('subscriptions', 'store_id', colocate_with => 'products');
