-- Sets the quantity of a line; 0 removes it. Lowering a quantity is refused only when it
-- falls below the product's minimum.
--
-- ARGV  9 item  10 quantity  11 stock, -1 for unlimited
--       12 minimum and 13 maximum quantity of a line
--       14 the code for which the product cannot be raised at all, or ""
-- Refusals: item_not_found, the code of ARGV 14, quantity_out_of_range (minimum,
--       maximum), out_of_stock, insufficient_stock (stock, held in other lines)

local line = find_line(hash, item)
if not line then return reply('item_not_found') end

local quantity = tonumber(ARGV[10])
if quantity == 0 then
  drop_line(hash, line)
  return accept(true)
end

local held, order, price = parse(hash.flat[line + 1])
local stock, minimum, maximum = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local raised = quantity > held
if raised and ARGV[14] ~= '' then return reply(ARGV[14]) end
if quantity < minimum or (raised and quantity > maximum) then
  return reply('quantity_out_of_range', minimum, maximum)
end
if raised and stock == 0 then return reply('out_of_stock') end
if raised and stock > 0 then
  local others = held_of_product(hash) - held
  if others + quantity > stock then return reply('insufficient_stock', stock, others) end
end

if quantity == held then return accept(false) end
put(hash, hash.flat[line], string.format('%d %d %s', quantity, order, price))
return accept(true)
