-- Edits a line: replaces it with what the service has computed from a read of it. If
-- another line already has the new ID, that line absorbs the edited one.
--
-- ARGV  i item  i + 1 to i + 5 see bounds.lua  i + 6 quantity, or "" to keep it
--       i + 7 the code with which any higher quantity is refused, or ""
--       i + 8 ID and i + 9 notice of the line as it was read; the ID stands for product, plan
--          and fields  i + 10 new ID  i + 11 unit price now, for a line that gets another ID, or
--          whose price the shopper accepts: then i + 12 is 1, else 0
--       i + 13 fields as stored, or ""  i + 14 new notice or ""  i + 15 changes of metadata or ""
--       i + 16 maximum bytes of text in the cart, i + 17 in the line
-- Refusals: item_not_found, line_changed (the line is not as it was read),
--       the code of ARGV i + 7, those of bounds.lua, room.lua and texts.lua

local function edit(hash, i)
  local text_size, refuse_text, refuse_line_text = room()
  local _, _, merge_metadata, put_metadata = texts()
  local at = find_line(hash, ARGV[i])
  if not at then return 'item_not_found' end
  local from = hash.flat[at]
  local old_notice, metadata = get(hash, from .. ':n') or '', get(hash, from .. ':m') or ''
  if from ~= ARGV[i + 8] or old_notice ~= ARGV[i + 9] then return 'line_changed' end

  local held, order, price = parse(hash.flat[at + 1])
  local quantity = tonumber(ARGV[i + 6]) or held
  local line, fields, notice, changes = ARGV[i + 10], ARGV[i + 13], ARGV[i + 14], ARGV[i + 15]
  local other = line ~= from and index(hash, line)

  -- The bounds of a line apply to the sum if another line absorbs this one.
  local before = text_size(get(hash, from .. ':f') or '', old_notice, metadata)
  local code, in_cart, its_metadata
  if not other then
    code, in_cart = refuse_new(hash, i, quantity, held, ARGV[i + 7])
    if code then return code, in_cart end
    if line ~= from then price = ARGV[i + 11] end
  else
    code, in_cart = refuse_growth(hash, i, quantity, held, ARGV[i + 7])
    if code then return code, in_cart end
    local absorbing
    absorbing, order, price = parse(hash.flat[other + 1])
    quantity = quantity + absorbing
    code, in_cart = refuse_line(i, quantity, tonumber(ARGV[i + 4]))
    if code then return code, in_cart end
    local its_notice = get(hash, line .. ':n') or ''
    if notice == '' then notice = its_notice end
    its_metadata = get(hash, line .. ':m') or ''
    before = before + text_size(fields, its_notice, its_metadata)
  end
  if ARGV[i + 12] == '1' then price = ARGV[i + 11] end
  local merged
  merged, code = merge_metadata(metadata, changes)
  if other then merged, code = merge_metadata(its_metadata, merged) end
  local after = text_size(fields, notice, merged)
  code = code or refuse_line_text(before, after, ARGV[i + 17], merged, changes) or refuse_text(hash, before, after, ARGV[i + 16])
  if code then return code end

  local value = quantity .. ' ' .. order .. ' ' .. price
  local altered = line ~= from or value ~= hash.flat[at + 1] or notice ~= old_notice or merged ~= metadata
  if altered then
    if line ~= from then drop_line(hash, at) end
    put(hash, line, value)
    if fields ~= '' and not index(hash, line .. ':f') then put(hash, line .. ':f', fields) end
    if notice ~= '' then put(hash, line .. ':n', notice) else drop(hash, index(hash, line .. ':n')) end
    put_metadata(hash, line .. ':m', merged)
  end
  return nil, altered, line, line == ARGV[i]
end
