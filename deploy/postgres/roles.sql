-- Creates the role that the service runs as. Safe to repeat. Run it before `commerce migrate up`,
-- with a role that may create roles:
--
--	psql "$OWNER_URL" -f deploy/postgres/roles.sql
--	psql "$OWNER_URL" -c '\password commerce_service'
--	SERVICE_ROLE=commerce_service commerce migrate up
--
-- The last command, with the URL of the tables' owner, grants the rights that the service needs.
-- Use commerce_service in the DATABASE_URL of `commerce serve`. `commerce migrate`, `commerce seed`,
-- `commerce prune` and `commerce token` still need the owner.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'commerce_service') THEN
        CREATE ROLE commerce_service LOGIN;
    END IF;
END $$;
