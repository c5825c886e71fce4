-- KEYS[1] a hash; ARGV: the member, by how much it grows, its bound, the key's TTL in ms.
-- Returns the member's new value, or an error beyond the bound, which changes nothing.
local n = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0) + tonumber(ARGV[2])
if n > tonumber(ARGV[3]) then
  return redis.error_reply('BOUND')
end
redis.call('HSET', KEYS[1], ARGV[1], n)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return n
