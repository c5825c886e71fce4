-- Merge, in the guest's slot: deletes the claimed cart, after its lines were added to
-- their owner's cart. A claim under another note stays: if a failover lost the claim that was
-- applied, the same cart may have been claimed again, with more lines.
--
-- KEYS  1 claimed sibling
-- ARGV  1 owner's tag and note  2 guest's cart id

if redis.call('HGET', KEYS[1], 'o') == ARGV[1] and redis.call('HGET', KEYS[1], 'i') == ARGV[2] then
  redis.call('DEL', KEYS[1])
end
return 1
