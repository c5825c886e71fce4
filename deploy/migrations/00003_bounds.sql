-- A second key for page links.

-- +goose Up

-- To change the key:
--	UPDATE page_link_key SET key = uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
-- Links of the key before stay good until the next change, so that instances which
-- learn of it at different times accept each other's.
ALTER TABLE page_link_key
    ADD COLUMN previous bytea CONSTRAINT page_link_key_previous_is_256_bits CHECK (octet_length(previous) = 32);
COMMENT ON COLUMN page_link_key.previous IS 'links signed with it are accepted; set to null to refuse them';
-- +goose StatementBegin
CREATE FUNCTION page_link_key_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.previous := OLD.key;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER changes BEFORE UPDATE ON page_link_key
    FOR EACH ROW WHEN (OLD.key <> NEW.key) EXECUTE FUNCTION page_link_key_changes();

-- +goose Down
DROP TRIGGER changes ON page_link_key;
DROP FUNCTION page_link_key_changes();
ALTER TABLE page_link_key DROP COLUMN previous;


