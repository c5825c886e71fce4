-- Adds to a line, and creates it if needed.
--
-- ARGV  i line  i + 1 to i + 5 see bounds.lua  i + 6 quantity  i + 7 unit price now
--       i + 8 fields as stored, or ""  i + 9 notice or ""  i + 10 changes of metadata or ""
--       i + 11 maximum number of lines  i + 12 maximum bytes of text in the cart, i + 13 in the line
-- Refusals: cart_full, those of bounds.lua, room.lua and texts.lua

local function add(hash, i)
  local line, fields, notice, changes = ARGV[i], ARGV[i + 8], ARGV[i + 9], ARGV[i + 10]
  local value = get(hash, line)
  local held, order, price = parse(value)
  if not held then
    survey(hash)
    local _, _, _, remaining_room = room()
    if hash.count >= remaining_room(hash, tonumber(ARGV[i + 11]), 0) then return 'cart_full' end
    if not hash.last_order then -- once for all of a list
      hash.last_order = 0
      for _, n in ipairs(hash.lines) do
        hash.last_order = math.max(hash.last_order, tonumber(string.match(hash.flat[n + 1], ' (%d+)') or 0))
      end
    end
    held, order, price = 0, hash.last_order + 1, ARGV[i + 7]
  end

  local total = held + ARGV[i + 6]
  local code, in_cart = refuse_line(i, total, tonumber(ARGV[i + 4]))
  if not code then code, in_cart = refuse_shared(hash, i, total - held, 0) end
  if code then return code, in_cart end

  -- A line's ID stands for its fields: only a notice, metadata or a new line changes the size of its text.
  if notice ~= '' or changes ~= '' or not value and fields ~= '' then
    local text_size, refuse_text, refuse_line_text = room()
    local _, _, merge_metadata, put_metadata = texts()
    local old_notice, old_metadata = get(hash, line .. ':n') or '', get(hash, line .. ':m') or ''
    local before = value and text_size(fields, old_notice, old_metadata) or 0
    local metadata
    metadata, code = merge_metadata(old_metadata, changes)
    if code then return code end
    local after = text_size(fields, notice ~= '' and notice or old_notice, metadata)
    code = refuse_line_text(before, after, ARGV[i + 13], metadata, changes) or refuse_text(hash, before, after, ARGV[i + 12])
    if code then return code end
    if fields ~= '' and not value then put(hash, line .. ':f', fields) end
    if notice ~= '' then put(hash, line .. ':n', notice) end
    if changes ~= '' then put_metadata(hash, line .. ':m', metadata) end
  end

  if not value then hash.last_order = order end
  put(hash, line, total .. ' ' .. order .. ' ' .. price)
  -- A repeat may come when the catalog gives the request's fields another meaning.
  return nil, true, line, fields == ''
end
