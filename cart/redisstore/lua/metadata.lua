-- Changes the cart's metadata.
--
-- ARGV  i changes of metadata  i + 1 maximum bytes of text in the cart
-- Refusals: those of room.lua and texts.lua

local function metadata(hash, i)
  local text_size, refuse_text = room()
  local _, _, merge_metadata, put_metadata = texts()
  local held = get(hash, 'd') or ''
  local merged, code = merge_metadata(held, ARGV[i])
  code = code or refuse_text(hash, text_size('', '', held), text_size('', '', merged), ARGV[i + 1])
  if code then return code end
  if merged ~= held then put_metadata(hash, 'd', merged) end
  return nil, merged ~= held
end
