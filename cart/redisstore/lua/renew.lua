-- Renews a cart's TTL, for a read that finds the renewal due. Creates nothing;
-- the remains of an emptied cart keep the time they have.
--
-- KEYS  1 cart
-- ARGV  1 TTL in ms
-- Reply {flat hash, ms left, now in ms}; an empty list and a negative number when there is
--       no cart

local now = clock()
local hash = scan(KEYS[1])
if not in_use(hash.flat) then return { hash.flat, redis.call('PTTL', KEYS[1]), now } end
local left = settle(KEYS[1], hash, ARGV[1], now)
return { hash.flat, left, now }
