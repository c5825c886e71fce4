-- The bounds of a line's quantity; prepended to add, set and edit. rules/bounds.go has the same rules.
--
-- ARGV, from the place i of the operation's first argument:
--       i + 1 stock, -1 for unlimited  i + 2 maximum of all lines of the product, 0 for none
--       i + 3 minimum and i + 4 maximum of a line  i + 5 step from the minimum, 0 and 1 for any
-- Refusals: quantity_out_of_range, off_step, out_of_stock, above_max_per_cart and
--       insufficient_stock with how many of the product the cart holds

-- held_of_product is the quantity that all lines of an item's product hold.
local function held_of_product(hash, item)
  local flat, sum = hash.flat, 0
  local product = string.match(item, '^%d*')
  local prefix = product .. '.'
  for n = 1, #flat, 2 do
    local member = flat[n]
    if member == product or string.sub(member, 1, #prefix) == prefix and string.byte(member, -2) ~= 58 then -- no :
      sum = sum + string.match(flat[n + 1], '^%d+')
    end
  end
  return sum
end

-- refuse_line checks the quantity of a line by the bounds of a line, with another maximum where a
-- quantity is lowered. Like all refuse functions here, it returns the code of a refusal and its number, if it has one, or nil.
local function refuse_line(i, quantity, maximum)
  local minimum, step = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 5])
  if quantity < minimum or quantity > maximum then return 'quantity_out_of_range' end
  if step > 1 and (quantity - minimum) % step ~= 0 then return 'off_step' end
end

-- refuse_shared checks what the product's lines share: stock and the maximum per cart must
-- cover added plus what the lines hold, where apart of that does not count.
local function refuse_shared(hash, i, added, apart)
  local stock, per_cart = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if stock < 0 and per_cart == 0 then return end
  local held = held_of_product(hash, ARGV[i]) - apart
  if per_cart > 0 and held + added > per_cart then return 'above_max_per_cart', held end
  if stock == 0 then return 'out_of_stock' end
  if stock > 0 and held + added > stock then return 'insufficient_stock', held end
end
