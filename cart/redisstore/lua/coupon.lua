-- Sets the cart's coupon, and replaces any other, or removes it.
--
-- ARGV  i code, or "" to remove it

local function coupon(hash, i)
  local code = ARGV[i]
  if (get(hash, 'c') or '') == code then return nil, false end
  if code == '' then drop(hash, hash.at.c) else put(hash, 'c', code) end
  return nil, true
end
