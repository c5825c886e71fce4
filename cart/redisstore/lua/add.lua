-- Adds to a line, and creates it if needed.
--
-- ARGV  i line  i + 1 to i + 5 see bounds.lua  i + 6 quantity  i + 7 unit price now
--       i + 8 fields as stored, or ""  i + 9 notice or ""  i + 10 changes of metadata or ""
--       i + 11 maximum number of lines  i + 12 maximum bytes of text in the cart, i + 13 in the line
-- Refusals: cart_full, those of bounds.lua, room.lua and texts.lua

local function add(hash, i)
  local line, quantity, fields, notice, changes = ARGV[i], tonumber(ARGV[i + 6]), ARGV[i + 8], ARGV[i + 9], ARGV[i + 10]
  local held, order, price = parse(get(hash, line))
  if not held then
    survey(hash)
    if hash.count >= remaining_room(hash, tonumber(ARGV[i + 11]), 0) then return 'cart_full' end
  end

  local total = (held or 0) + quantity
  local code, in_cart = refuse(hash, i, total, quantity, 0)
  if code then return code, in_cart end

  -- A line's ID stands for its fields: only a notice, metadata or a new line changes the size of its text.
  local metadata
  if notice ~= '' or changes ~= '' or not held then
    local old_fields, old_notice = held and fields or '', held and get(hash, line .. ':n') or ''
    local old_metadata = held and get(hash, line .. ':m') or ''
    metadata, code = merge_metadata(old_metadata, changes)
    if code then return code end
    local before = text_size(old_fields, old_notice, old_metadata)
    local after = text_size(fields, notice ~= '' and notice or old_notice, metadata)
    code = refuse_line_text(before, after, ARGV[i + 13], metadata, changes) or refuse_text(hash, before, after, ARGV[i + 12])
    if code then return code end
  end

  if not held then
    order = 1
    for _, n in ipairs(hash.lines) do
      local other = tonumber(string.match(hash.flat[n + 1], ' (%d+)') or 0)
      if other >= order then order = other + 1 end
    end
  end
  put(hash, line, total .. ' ' .. order .. ' ' .. (price or ARGV[i + 7]))
  if fields ~= '' and not held then put(hash, line .. ':f', fields) end
  if notice ~= '' then put(hash, line .. ':n', notice) end
  if changes ~= '' then put_metadata(hash, line .. ':m', metadata) end
  -- A repeat may come when the catalog gives the request's fields another meaning.
  return nil, true, line, fields == ''
end
