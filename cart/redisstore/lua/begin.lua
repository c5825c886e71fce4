-- Undo of a merge, in the slot of a fresh guest's token: begins the cart that gets what is taken out of
-- the customer's.
--
-- KEYS  1 guest's cart
-- ARGV  1 cart TTL in ms  2 mark of its version  3 … members and their values

local hash = scan(KEYS[1])
if hash.at.i then -- it is sent a second time
  touch(KEYS[1])
  return 1
end
for n = 3, #ARGV, 2 do put(hash, ARGV[n], ARGV[n + 1]) end
advance(hash, ARGV[2])
settle(KEYS[1], hash, ARGV[1], clock())
return 1
