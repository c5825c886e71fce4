-- Sets the quantity of a line; 0 removes it. Lowering is never refused, but for a
-- product's least quantity.
--
-- ARGV  9 item  10 quantity  11 stock, -1 for unlimited  12 least and 13 most of a line
--       14 the code for which the product cannot be raised at all, or ""
-- Refusals: item_not_found, the code of ARGV 14, quantity_out_of_range (least, most),
--       out_of_stock, insufficient_stock (stock, held in other lines)

local stopped = judge()
if stopped then return stopped end

local line = find(ARGV[9])
if not line then return reply('item_not_found') end

local quantity = tonumber(ARGV[10])
local held, order, price = parse(hash[line])
if quantity == 0 then
  drop(line)
  return accept(true)
end

local stock, least, most = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local raised = quantity > held
if raised and ARGV[14] ~= '' then return reply(ARGV[14]) end
if quantity < least or (raised and quantity > most) then
  return reply('quantity_out_of_range', least, most)
end
if raised and stock == 0 then return reply('out_of_stock') end
if raised and stock > 0 then
  local others = tally(hash, product_of(line)).product - held
  if others + quantity > stock then return reply('insufficient_stock', stock, others) end
end

if quantity == held then return accept(false) end
put(cart, hash, line, string.format('%d %d %s', quantity, order, price))
return accept(true)
