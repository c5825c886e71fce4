-- The functions of Citus that deploy/postgres/citus.sql calls. Instead of shards on other servers,
-- a distributed table gets hash partitions. A plan then shows whether a statement needs one shard or all.
CREATE FUNCTION create_reference_table(name text) RETURNS void LANGUAGE plpgsql AS 'BEGIN END';
CREATE FUNCTION create_distributed_table(name text, key text, colocate_with text, shard_count int DEFAULT 64) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('ALTER TABLE %I RENAME TO undistributed', name);
	EXECUTE format('CREATE TABLE %I (LIKE undistributed INCLUDING ALL) PARTITION BY HASH (%I)', name, key);
	FOR i IN 0..7 LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 8, REMAINDER %s)', name || '_shard_' || i, name, i);
	END LOOP;
	DROP TABLE undistributed CASCADE;
END $$;
