-- Creates the roles that the service runs as. Safe to repeat. Run it as the owner of
-- the tables, with the right to create roles, after every `commerce migrate up`:
--
--	psql "$OWNER_URL" -f deploy/postgres/roles.sql
--	psql "$OWNER_URL" -c '\password commerce_service'
--
-- Use commerce_service in the DATABASE_URL of `commerce serve`. `commerce migrate`,
-- `commerce seed`, `commerce import`, `commerce prune` and `commerce token` still need the owner.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'commerce_service') THEN
        -- NOINHERIT: it has the rights of commerce_last_used only after SET ROLE.
        CREATE ROLE commerce_service LOGIN NOINHERIT;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'commerce_last_used') THEN
        CREATE ROLE commerce_last_used NOLOGIN;
    END IF;
END $$;

-- Read-only.
GRANT USAGE ON SCHEMA public TO commerce_service, commerce_last_used;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO commerce_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO commerce_service;

-- Only records when API tokens were last used. The service switches to this role for
-- that.
GRANT SELECT (id, last_used_at), UPDATE (last_used_at) ON api_tokens TO commerce_last_used;
GRANT commerce_last_used TO commerce_service;
