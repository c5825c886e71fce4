-- Merge, in the guest's slot: deletes the claimed cart, after its lines were added to
-- their owner's cart.
--
-- KEYS  1 claimed sibling
-- ARGV  1 owner's tag  2 guest's cart id

local owner = string.match(redis.call('HGET', KEYS[1], 'o') or '', '^%S+')
if owner == ARGV[1] and redis.call('HGET', KEYS[1], 'i') == ARGV[2] then
  redis.call('DEL', KEYS[1])
end
return 1
