-- The bounds of a line's quantity and text; prepended to add, set and edit. rules/bounds.go
-- has the same rules.
--
-- ARGV  11 stock, -1 for unlimited  12 maximum of all lines of the product, 0 for none
--       13 minimum and 14 maximum of a line  15 step from the minimum, 0 and 1 for any
-- Refusals: quantity_out_of_range, off_step, out_of_stock, above_max_per_cart and
--       insufficient_stock with how many of the product the cart holds

local STOCK, PER_CART = tonumber(ARGV[11]), tonumber(ARGV[12])
local MIN, MAX, STEP = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])

local function refuse_step(quantity)
  if STEP > 1 and quantity > MIN and (quantity - MIN) % STEP ~= 0 then return 'off_step' end
end

-- refuse_line checks the quantity of a line by the bounds of a line. Like all refuse
-- functions here, it returns the code of a refusal and its number, if it has one, or nil.
local function refuse_line(quantity)
  if quantity < MIN or quantity > MAX then return 'quantity_out_of_range' end
  return refuse_step(quantity)
end

-- refuse_shared checks what the product's lines share: stock and the maximum per cart must
-- cover added plus what the lines hold, where apart of that does not count.
local function refuse_shared(hash, added, apart)
  if STOCK < 0 and PER_CART == 0 then return end
  local held = held_of_product(hash) - apart
  if PER_CART > 0 and held + added > PER_CART then return 'above_max_per_cart', held end
  if STOCK == 0 then return 'out_of_stock' end
  if STOCK > 0 and held + added > STOCK then return 'insufficient_stock', held end
end

-- refuse checks the quantity that a line would have, of which added is new to the cart.
local function refuse(hash, quantity, added, apart)
  local code = refuse_line(quantity)
  if code then return code end
  return refuse_shared(hash, added, apart)
end

-- refuse_growth checks a new quantity of a line whose quantity is held, except for the
-- bounds of the line. raise is the code with which any higher quantity is refused, or "".
local function refuse_growth(hash, quantity, held, raise)
  if quantity <= held then return end
  if raise ~= '' then return raise end
  return refuse_shared(hash, quantity, held)
end

-- refuse_new checks a new quantity of a line whose quantity is held. raise is that of
-- refuse_growth.
local function refuse_new(hash, quantity, held, raise)
  if quantity > held then
    if raise ~= '' then return raise end
    return refuse(hash, quantity, quantity, held)
  end
  if quantity < held then
    if quantity < MIN then return 'quantity_out_of_range' end
    return refuse_step(quantity)
  end
end

local function text_size(fields, notice)
  return tonumber(string.match(fields, '^%d+') or 0) + #notice
end

-- refuse_text checks a change of the size of a line's text.
local function refuse_text(hash, before, after, maximum)
  if after <= before then return end
  survey(hash)
  if hash.text - before + after > maximum then return 'text_full' end
end
