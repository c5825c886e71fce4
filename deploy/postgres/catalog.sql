-- Loads a store's products with their plans and fields from CSV files, or updates them. docs/data.md
-- says what it writes. Run it next to the files, as the owner of the tables:
--
--	psql -q "$OWNER_URL" -v store=7 -f catalog.sql

\set ON_ERROR_STOP on
BEGIN;
-- 1. The files, as they are. Line 1 of each has the names of the columns.
SELECT format('CREATE TEMP TABLE new_%1$s ON COMMIT DROP AS TABLE %1$s WITH NO DATA;
  ALTER TABLE new_%1$s ADD line bigint GENERATED ALWAYS AS IDENTITY (START 2)', name)
FROM unnest('{products,plans,fields,field_options}'::text[]) name \gexec
\copy new_products (id, name, names, slug, type, price, original_price, stock) FROM products.csv (FORMAT csv, HEADER MATCH)
\copy new_plans (id, product_id, duration, price) FROM plans.csv (FORMAT csv, HEADER MATCH)
\copy new_fields (product_id, name, required, position) FROM fields.csv (FORMAT csv, HEADER MATCH)
\copy new_field_options (product_id, field, code, name, price, position) FROM field_options.csv (FORMAT csv, HEADER MATCH)

-- 2. What is wrong with them: each CHECK of the tables, each column that must have a value, each
--    row that repeats, and each product that is neither in the file nor in the store.
CREATE TEMP TABLE faults (file text, line bigint, columns text, fault text) ON COMMIT DROP;
SELECT format('INSERT INTO faults SELECT %1$L, line, %2$L, %3$L FROM new_%1$s WHERE NOT (%4$s) AND num_nonnulls(%2$s) > 0', t,
  (SELECT string_agg(attname, ', ') FROM pg_attribute WHERE attrelid = conrelid AND attnum = ANY (conkey)),
  replace(conname, '_', ' '), pg_get_expr(conbin, conrelid))
FROM unnest('{products,plans,fields,field_options}'::text[]) t JOIN pg_constraint ON conrelid = t::regclass AND contype = 'c' \gexec
SELECT format('INSERT INTO faults SELECT %1$L, line, %2$L, %3$L FROM new_%1$s WHERE %2$I IS NULL', t, c, 'has no value')
FROM (VALUES ('products', '{id,name,slug,type,price,original_price}'::text[]), ('plans', '{id,product_id,duration,price}'),
  ('fields', '{product_id,name,position}'), ('field_options', '{product_id,field,code,name,position}')) v (t, cs), unnest(cs) c \gexec
SELECT format('INSERT INTO faults SELECT %1$L, line, %2$L, %3$L FROM (SELECT line, count(*) OVER (PARTITION BY %2$s) FROM new_%1$s) n
  WHERE count > 1', t, k, 'is there twice')
FROM (VALUES ('products', 'id'), ('plans', 'id'), ('fields', 'product_id, name'), ('fields', 'product_id, position'),
  ('field_options', 'product_id, field, code')) v (t, k) \gexec
SELECT format('INSERT INTO faults SELECT %1$L, line, %2$L, %3$L FROM new_%1$s n
  WHERE NOT EXISTS (SELECT FROM new_products WHERE id = n.product_id)
  AND NOT EXISTS (SELECT FROM products WHERE store_id = %4$s AND id = n.product_id)', t, 'product_id', 'is no product', :store)
FROM unnest('{plans,fields}'::text[]) t \gexec
INSERT INTO faults SELECT 'plans', line, 'product_id', 'is not the product of this plan'
FROM new_plans n JOIN plans p ON p.store_id = :store AND p.id = n.id AND p.product_id <> n.product_id;
SELECT count(*) > 0 AS faulty FROM faults \gset
\if :faulty
  SELECT * FROM faults ORDER BY file, line, columns LIMIT 100;
  DO $$ BEGIN RAISE EXCEPTION 'nothing was written'; END $$;
\endif

-- 3. New rows, and rows that differ. The stock of a product that exists is not touched, because
--    sales have changed it.
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO products AS p (store_id, id, name, names, slug, type, price, original_price, stock)
SELECT :store, id, name, coalesce(names, '{}'), slug, type, price, original_price, stock FROM new_products
ON CONFLICT (store_id, id) DO UPDATE SET name = excluded.name, names = excluded.names, slug = excluded.slug,
  type = excluded.type, price = excluded.price, original_price = excluded.original_price
WHERE (p.name, p.names, p.slug, p.type, p.price, p.original_price) IS DISTINCT FROM
  (excluded.name, excluded.names, excluded.slug, excluded.type, excluded.price, excluded.original_price);
INSERT INTO plans AS p (store_id, id, product_id, duration, price)
SELECT :store, id, product_id, duration, price FROM new_plans
ON CONFLICT (store_id, id) DO UPDATE SET duration = excluded.duration, price = excluded.price
WHERE (p.duration, p.price) IS DISTINCT FROM (excluded.duration, excluded.price);
DELETE FROM fields f USING new_products p WHERE f.store_id = :store AND f.product_id = p.id
  AND NOT EXISTS (SELECT FROM new_fields n WHERE n.product_id = f.product_id AND n.name = f.name);
INSERT INTO fields AS f (store_id, product_id, name, required, position)
SELECT :store, product_id, name, coalesce(required, false), position FROM new_fields
ON CONFLICT (store_id, product_id, name) DO UPDATE SET required = excluded.required, position = excluded.position
WHERE (f.required, f.position) IS DISTINCT FROM (excluded.required, excluded.position);
DELETE FROM field_options o USING new_products p WHERE o.store_id = :store AND o.product_id = p.id
  AND NOT EXISTS (SELECT FROM new_field_options n WHERE (n.product_id, n.field, n.code) = (o.product_id, o.field, o.code));
INSERT INTO field_options AS o (store_id, product_id, field, code, name, price, position)
SELECT :store, product_id, field, code, name, coalesce(price, 0), position FROM new_field_options
ON CONFLICT (store_id, product_id, field, code) DO UPDATE SET name = excluded.name, price = excluded.price, position = excluded.position
WHERE (o.name, o.price, o.position) IS DISTINCT FROM (excluded.name, excluded.price, excluded.position);
COMMIT;
