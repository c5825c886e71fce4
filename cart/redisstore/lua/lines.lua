-- Lines, as items name them; prepended to set, edit and remove.

-- find_line returns the index of the line that an item names: the line with that ID, or, outside of a
-- list, the first line in cart order of the product with that ID; nil for none.
local function find_line(hash, item)
  local first, lowest = index(hash, item), nil
  if first or hash.in_list or string.find(item, '%D') then return first end
  local flat, prefix = hash.flat, item .. '.'
  for n = 1, #flat, 2 do
    if string.sub(flat[n], 1, #prefix) == prefix and string.byte(flat[n], -2) ~= 58 then -- no :
      local _, order = parse(flat[n + 1])
      order = tonumber(order)
      if not first or order < lowest then first, lowest = n, order end
    end
  end
  return first
end

local function drop_line(hash, n)
  local line = hash.flat[n]
  drop(hash, n)
  drop(hash, index(hash, line .. ':f'))
  drop(hash, index(hash, line .. ':n'))
  drop(hash, index(hash, line .. ':m'))
end
