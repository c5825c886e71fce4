-- Edits a line: replaces it with what the service has computed from a read of it. If
-- another line already has the new ID, that line absorbs the edited one.
--
-- ARGV  10 item  11 to 15 see bounds.lua  16 quantity, or "" to keep it
--       17 the code with which any higher quantity is refused, or ""
--       18 ID and 19 notice of the line as it was read; the ID stands for product, plan
--          and fields  20 new ID  21 unit price now, for a line that gets another ID
--       22 fields as stored, or ""  23 new notice or ""  24 maximum bytes of text in the cart
-- Refusals: item_not_found, line_changed (the line is not as it was read), text_full,
--       the code of ARGV 17, those of bounds.lua

local at = find_line(hash, item)
if not at then return reply('item_not_found') end
local from = hash.flat[at]
local old_notice = get(hash, from .. ':n') or ''
if from ~= ARGV[18] or old_notice ~= ARGV[19] then return reply('line_changed') end

local held, order, price = parse(hash.flat[at + 1])
local quantity = tonumber(ARGV[16]) or held
local line, fields, notice = ARGV[20], ARGV[22], ARGV[23]
local other = line ~= from and index(hash, line)

-- The bounds of a line apply to the sum if another line absorbs this one.
local before = text_size(get(hash, from .. ':f') or '', old_notice)
local code, in_cart
if not other then
  code, in_cart = refuse_new(hash, quantity, held, ARGV[17])
  if code then return reply(code, in_cart) end
  if line == from and quantity == held and notice == old_notice then return accept(false, unnamed(line)) end
  if line ~= from then price = ARGV[21] end
else
  code, in_cart = refuse_growth(hash, quantity, held, ARGV[17])
  if code then return reply(code, in_cart) end
  local absorbing
  absorbing, order, price = parse(hash.flat[other + 1])
  quantity = quantity + absorbing
  code, in_cart = refuse_line(quantity)
  if code then return reply(code, in_cart) end
  local its_notice = get(hash, line .. ':n') or ''
  if notice == '' then notice = its_notice end
  before = before + text_size(fields, its_notice)
end
local _, max_text = remaining_room(hash, 0, tonumber(ARGV[24]))
code, in_cart = refuse_text(hash, before, text_size(fields, notice), max_text)
if code then return reply(code, in_cart) end

if line ~= from then drop_line(hash, at) end
put(hash, line, quantity .. ' ' .. order .. ' ' .. price)
if fields ~= '' and not index(hash, line .. ':f') then put(hash, line .. ':f', fields) end
if notice ~= '' then
  put(hash, line .. ':n', notice)
else
  drop(hash, index(hash, line .. ':n'))
end
return accept(true, unnamed(line))
