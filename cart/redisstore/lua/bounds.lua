-- The bounds of a line's quantity and text; prepended to add, set and edit. rules/bounds.go
-- has the same rules.
--
-- ARGV, from the place i of the operation's first argument:
--       i + 1 stock, -1 for unlimited  i + 2 maximum of all lines of the product, 0 for none
--       i + 3 minimum and i + 4 maximum of a line  i + 5 step from the minimum, 0 and 1 for any
-- Refusals: quantity_out_of_range, off_step, out_of_stock, above_max_per_cart and
--       insufficient_stock with how many of the product the cart holds

local function refuse_step(i, quantity)
  local minimum, step = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 5])
  if step > 1 and quantity > minimum and (quantity - minimum) % step ~= 0 then return 'off_step' end
end

-- refuse_line checks the quantity of a line by the bounds of a line. Like all refuse
-- functions here, it returns the code of a refusal and its number, if it has one, or nil.
local function refuse_line(i, quantity)
  if quantity < tonumber(ARGV[i + 3]) or quantity > tonumber(ARGV[i + 4]) then return 'quantity_out_of_range' end
  return refuse_step(i, quantity)
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

-- refuse checks the quantity that a line would have, of which added is new to the cart.
local function refuse(hash, i, quantity, added, apart)
  local code = refuse_line(i, quantity)
  if code then return code end
  return refuse_shared(hash, i, added, apart)
end

-- refuse_growth checks a new quantity of a line whose quantity is held, except for the
-- bounds of the line. raise is the code with which any higher quantity is refused, or "".
local function refuse_growth(hash, i, quantity, held, raise)
  if quantity <= held then return end
  if raise ~= '' then return raise end
  return refuse_shared(hash, i, quantity, held)
end

-- refuse_new checks a new quantity of a line whose quantity is held. raise is that of
-- refuse_growth.
local function refuse_new(hash, i, quantity, held, raise)
  if quantity > held then
    if raise ~= '' then return raise end
    return refuse(hash, i, quantity, quantity, held)
  end
  if quantity < held then
    if quantity < tonumber(ARGV[i + 3]) then return 'quantity_out_of_range' end
    return refuse_step(i, quantity)
  end
end
