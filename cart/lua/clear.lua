-- Removes all that a shopper put in. Id and version stay, and so do the notes on
-- guest carts: on those that were merged, which lie beside the cart, and on those
-- that could not be yet, whose lines would be lost without.

local stopped = judge()
if stopped then return stopped end

local changed = false
for _, member in ipairs(redis.call('HKEYS', cart)) do
  if member ~= 'i' and member ~= 'v' and member ~= 'r' and member ~= 'm' then
    del(cart, hash, member)
    changed = true
  end
end
return accept(changed)
