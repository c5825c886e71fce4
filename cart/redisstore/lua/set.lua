-- Sets the quantity of a line; 0 removes it. A lower quantity is refused only if it is
-- below the product's minimum, or between two steps.
--
-- ARGV  i item  i + 1 to i + 5 see bounds.lua  i + 6 quantity
--       i + 7 the code with which any higher quantity is refused, or ""
-- Refusals: item_not_found, the code of ARGV i + 7, those of bounds.lua

local function set(hash, i)
  local at = find_line(hash, ARGV[i])
  if not at then return 'item_not_found' end

  local line, quantity = hash.flat[at], tonumber(ARGV[i + 6])
  if quantity == 0 then
    drop_line(hash, at)
    return nil, true
  end

  local held, order, price = parse(hash.flat[at + 1])
  local code, in_cart = refuse_new(hash, i, quantity, held, ARGV[i + 7])
  if code then return code, in_cart end
  if quantity ~= held then put(hash, line, quantity .. ' ' .. order .. ' ' .. price) end
  return nil, quantity ~= held, line, line == ARGV[i]
end
