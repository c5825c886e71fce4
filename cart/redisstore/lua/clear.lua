-- Removes everything that a shopper added: the lines, the coupon and the cart's metadata. Id,
-- version and stamps stay. So do the notes of unfinished merges: without them, the lines of those
-- merges would be lost.

local function clear(hash)
  local dropped = false
  for n = 1, #hash.flat, 2 do
    local first = string.byte(hash.flat[n]) or 0
    if first >= 48 and first <= 57 or first == 99 or first == 100 then -- 0 to 9, c, d
      drop(hash, n)
      dropped = true
    end
  end
  return nil, dropped
end
