-- Merge, in the guest's slot: deletes the claimed cart, after its lines were added to
-- their owner's cart. A claim with another name stays: if a failover lost the claim that was
-- applied, the same cart may have been claimed again under the same note, with more lines.
--
-- KEYS  1 claimed sibling
-- ARGV  1 owner's tag, note and name of the claim, as in member o

if redis.call('HGET', KEYS[1], 'o') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
