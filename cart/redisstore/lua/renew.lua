-- Renews a cart's TTL, for a read that has found too little of it left. Creates nothing;
-- the remains of an emptied cart keep the time they have.
--
-- KEYS  1 cart
-- ARGV  1 TTL in ms
-- Reply {flat hash, ms left, now in ms}; an empty list and a negative number when there is
--       no cart

local now = clock()
local flat = read(KEYS[1])
if not in_use(flat) then return { flat, redis.call('PTTL', KEYS[1]), now } end
return { flat, settle(KEYS[1], scan(flat, ''), ARGV[1], now), now }
