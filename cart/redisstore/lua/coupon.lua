-- Gives the cart a coupon, which replaces another, or takes it away.
--
-- ARGV  9 code, or "" to take it away

local code = ARGV[9]
if (get(hash, 'c') or '') == code then return accept(false) end
if code == '' then drop(hash, hash.at.c) else put(hash, 'c', code) end
return accept(true)
