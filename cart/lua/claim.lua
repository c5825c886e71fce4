-- Merge, in the guest's slot: takes the guest's cart aside for one
-- customer. The token is free at once: what is added under it from now on begins
-- a cart with an id of its own. One claim a token may be under way.
--
-- KEYS  1 guest's cart  2 claimed sibling  3 guest's replays
-- ARGV  1 owner's tag  2 TTL of the claim in ms, never renewed
--       3 "1" to claim, "0" to only find again what this owner claimed before
--       4 now in ms
-- Reply {"nothing"}, {"other", owner's tag} when another customer's claim must be
--       driven first, or {"claimed" now or "again", flat hash, {replay, expiry, …}}

local owner = redis.call('HGET', KEYS[2], 'o')
if owner and owner ~= ARGV[1] then return { 'other', owner } end
if not owner then
  if ARGV[3] ~= '1' or redis.call('EXISTS', KEYS[1]) == 0 then return { 'nothing' } end
  redis.call('RENAME', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[2], 'o', ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
return {
  owner and 'again' or 'claimed',
  redis.call('HGETALL', KEYS[2]),
  redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[4], '+inf', 'WITHSCORES'),
}
