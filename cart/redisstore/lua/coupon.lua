-- Gives the cart a coupon, in the place of another, or takes it away.
--
-- ARGV  9 code, or "" to take it away

local stopped = judge()
if stopped then return stopped end

local code = ARGV[9]
if (hash.c or '') == code then return accept(false) end
if code == '' then del(cart, hash, 'c') else put(cart, hash, 'c', code) end
return accept(true)
