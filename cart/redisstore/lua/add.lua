-- Adds to a line, and creates it if needed.
--
-- ARGV  10 line  11 to 15 see bounds.lua  16 quantity  17 unit price now
--       18 fields as stored, or ""  19 notice or ""
--       20 maximum number of lines  21 maximum bytes of text in the cart
-- Refusals: cart_full, text_full, those of bounds.lua

local line, quantity = item, tonumber(ARGV[16])
local fields, notice = ARGV[18], ARGV[19]
local held, order, price = parse(get(hash, line))
local max_lines, max_text = remaining_room(hash, tonumber(ARGV[20]), tonumber(ARGV[21]))

if not held then
  survey(hash)
  if #hash.lines >= max_lines then return reply('cart_full') end
end

local total = (held or 0) + quantity
local code, in_cart = refuse(hash, total, quantity, 0)
if code then return reply(code, in_cart) end

-- A line's ID stands for its fields: only a notice or a new line changes the size of its text.
if notice ~= '' or not held then
  local old_fields, old_notice = held and fields or '', held and get(hash, line .. ':n') or ''
  code, in_cart = refuse_text(hash, text_size(old_fields, old_notice), text_size(fields, notice), max_text)
  if code then return reply(code, in_cart) end
end

if not held then
  order = 1
  for _, n in ipairs(hash.lines) do
    local other = tonumber(string.match(hash.flat[n + 1], ' (%d+)'))
    if other >= order then order = other + 1 end
  end
end
put(hash, line, total .. ' ' .. order .. ' ' .. (price or ARGV[17]))
if fields ~= '' and not held then put(hash, line .. ':f', fields) end
if notice ~= '' then put(hash, line .. ':n', notice) end
-- A repeat may come when the catalog gives the request's fields another meaning.
return accept(true, fields ~= '' and line or nil)
