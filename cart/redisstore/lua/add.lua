-- Adds to a line, or begins it.
--
-- ARGV  9 line  10 quantity  11 unit price now  12 fields as stored, or ""  13 notice or ""
--       14 stock, -1 for unlimited  15 least and 16 most of a line
--       17 most lines  18 most bytes of text in the cart
-- Refusals: cart_full (lines held, 0 or text held, 1), quantity_out_of_range
--       (least, most), out_of_stock, insufficient_stock (stock, held already)

local stopped = judge()
if stopped then return stopped end

local line, quantity = ARGV[9], tonumber(ARGV[10])
local fields, notice = ARGV[12], ARGV[13]
local stock, least, most = tonumber(ARGV[14]), tonumber(ARGV[15]), tonumber(ARGV[16])
local held, order, price = parse(hash[line])
local all = tally(hash, product_of(line))

if not held and all.lines >= tonumber(ARGV[17]) then return reply('cart_full', all.lines, 0) end

local total = (held or 0) + quantity
if total < least or total > most then return reply('quantity_out_of_range', least, most) end
if stock == 0 then return reply('out_of_stock') end
if stock > 0 and all.product + quantity > stock then
  return reply('insufficient_stock', stock, all.product)
end

local before = text_of(hash, line)
local after = (fields ~= '' and tonumber(string.match(fields, '^%d+')) or 0)
  + string.len(notice ~= '' and notice or hash[line .. ':n'] or '')
if after > before and all.text - before + after > tonumber(ARGV[18]) then
  return reply('cart_full', all.text, 1)
end

put(cart, hash, line, string.format('%d %d %s', total, order or all.order + 1, price or ARGV[11]))
if fields ~= '' then put(cart, hash, line .. ':f', fields) end
if notice ~= '' then put(cart, hash, line .. ':n', notice) end
return accept(true)
