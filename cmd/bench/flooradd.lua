-- KEYS[1]: a hash. ARGV: the field, its increment, its maximum, the key's TTL in ms.
-- Returns the field's new value, or an error if that is above the maximum. An error
-- changes nothing.
local n = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0) + tonumber(ARGV[2])
if n > tonumber(ARGV[3]) then
  return redis.error_reply('BOUND')
end
redis.call('HSET', KEYS[1], ARGV[1], n)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return n
