-- Adds to a line, and creates it if needed.
--
-- ARGV  9 line  10 quantity  11 unit price now  12 fields as stored, or ""  13 notice or ""
--       14 stock, -1 for unlimited  15 minimum and 16 maximum quantity of a line
--       17 maximum number of lines  18 maximum bytes of text in the cart
-- Refusals: cart_full (lines held, 0 or text held, 1), quantity_out_of_range
--       (minimum, maximum), out_of_stock, insufficient_stock (stock, held already)

local line, quantity = item, tonumber(ARGV[10])
local fields, notice = ARGV[12], ARGV[13]
local stock, minimum, maximum = tonumber(ARGV[14]), tonumber(ARGV[15]), tonumber(ARGV[16])
local held, order, price = parse(get(hash, line))

if not held and #hash.lines >= tonumber(ARGV[17]) then return reply('cart_full', #hash.lines, 0) end

local total = (held or 0) + quantity
if total < minimum or total > maximum then return reply('quantity_out_of_range', minimum, maximum) end
if stock == 0 then return reply('out_of_stock') end
if stock > 0 then
  local of_product = held_of_product(hash)
  if of_product + quantity > stock then return reply('insufficient_stock', stock, of_product) end
end

local function size(fields, notice)
  return tonumber(string.match(fields, '^%d+') or 0) + #notice
end

local old_notice = get(hash, line .. ':n') or ''
local before = size(get(hash, line .. ':f') or '', old_notice)
local after = size(fields, notice ~= '' and notice or old_notice)
if after > before and hash.text - before + after > tonumber(ARGV[18]) then
  return reply('cart_full', hash.text, 1)
end

if not held then
  order = 1
  for _, n in ipairs(hash.lines) do
    local other = tonumber(string.match(hash.flat[n + 1], ' (%d+)'))
    if other >= order then order = other + 1 end
  end
end
put(hash, line, string.format('%d %d %s', total, order, price or ARGV[11]))
if fields ~= '' then put(hash, line .. ':f', fields) end
if notice ~= '' then put(hash, line .. ':n', notice) end
return accept(true)
