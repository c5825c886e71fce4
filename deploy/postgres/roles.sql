-- Creates the roles of the service and of `commerce subscriptions prune`. Safe to repeat. Run it before
-- `commerce migrate up`, with a role that may create roles:
--
--	psql "$OWNER_URL" -f deploy/postgres/roles.sql
--	psql "$OWNER_URL" -c '\password commerce_service'
--	psql "$OWNER_URL" -c '\password commerce_prune'
--	SERVICE_ROLE=commerce_service PRUNE_ROLE=commerce_prune commerce migrate up
--
-- The last command, with the URL of the tables' owner, grants the rights that the roles need, on the
-- tables of the service alone. Use commerce_service in the DATABASE_URL of `commerce serve`, and
-- commerce_prune in that of `commerce subscriptions prune`. `commerce migrate`, `commerce seed` and
-- `commerce token` still need the owner.

DO $$
DECLARE
    needed text;
BEGIN
    FOREACH needed IN ARRAY ARRAY['commerce_service', 'commerce_prune'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = needed) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', needed);
        END IF;
    END LOOP;
END $$;

-- As the service sets them itself on direct connections. Behind a pooler, it makes no settings.
ALTER ROLE commerce_service SET statement_timeout = '10s';
ALTER ROLE commerce_service SET max_parallel_workers_per_gather = 0;
ALTER ROLE commerce_prune SET statement_timeout = '1min';
