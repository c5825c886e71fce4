-- Sets the cart's coupon, and replaces any other, or removes it.
--
-- ARGV  10 code, or "" to remove it

local code = ARGV[10]
if (get(hash, 'c') or '') == code then return accept(false) end
if code == '' then drop(hash, hash.at.c) else put(hash, 'c', code) end
return accept(true)
