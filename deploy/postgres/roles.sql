-- The roles that the service runs as, in the database to which it is applied; safe
-- to repeat. Apply it as the owner of the tables, who may create roles, after
-- `commerce migrate up` and after each later one:
--
--	psql "$OWNER_URL" -f deploy/postgres/roles.sql
--	psql "$OWNER_URL" -c '\password commerce_service'
--
-- DATABASE_URL of `commerce serve` names commerce_service. Migrations, seeds and
-- `commerce token` go on as the owner.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'commerce_service') THEN
        -- Without inheritance: what the second role may, it may only by becoming it.
        CREATE ROLE commerce_service LOGIN NOINHERIT;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'commerce_last_used') THEN
        CREATE ROLE commerce_last_used NOLOGIN;
    END IF;
END $$;

-- Reads, and nothing else.
GRANT USAGE ON SCHEMA public TO commerce_service, commerce_last_used;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO commerce_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO commerce_service;

-- Notes when API tokens were used last, and changes nothing else. The service
-- becomes it for that alone.
GRANT SELECT (id, last_used_at), UPDATE (last_used_at) ON api_tokens TO commerce_last_used;
GRANT commerce_last_used TO commerce_service;
