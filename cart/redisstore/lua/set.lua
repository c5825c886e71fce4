-- Sets the quantity of a line; 0 removes it. A lower quantity is refused only if it is
-- below the product's minimum, or between two steps.
--
-- ARGV  10 item  11 to 15 see bounds.lua  16 quantity
--       17 the code with which any higher quantity is refused, or ""
-- Refusals: item_not_found, the code of ARGV 17, those of bounds.lua

local at = find_line(hash, item)
if not at then return reply('item_not_found') end

local line, quantity = hash.flat[at], tonumber(ARGV[16])
if quantity == 0 then
  drop_line(hash, at)
  return accept(true)
end

local held, order, price = parse(hash.flat[at + 1])
local code, in_cart = refuse_new(hash, quantity, held, ARGV[17])
if code then return reply(code, in_cart) end
if quantity == held then return accept(false, unnamed(line)) end
put(hash, line, quantity .. ' ' .. order .. ' ' .. price)
return accept(true, unnamed(line))
