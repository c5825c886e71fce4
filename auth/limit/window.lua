-- Counts a use of a client in the period that begins with its first use, or takes one back.
--
-- KEYS  1 the client's hash: use -> 1. It expires when the period ends
-- ARGV  1 the most uses  2 the period in ms  3 "1" to count a use, "-1" to take one back  4 the use's own name,
--       so that a use of an earlier period is not taken back from this one
-- Reply the ms until the period ends if the use is one too many, which is not counted, else 0; and
--       1, the number of the rate

local most, period, change, use = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
if change == '-1' then
  redis.call('HDEL', KEYS[1], use)
  return {0, 1}
end
local before = redis.call('HLEN', KEYS[1])
if before >= most then return {math.max(redis.call('PTTL', KEYS[1]), 1), 1} end
redis.call('HSET', KEYS[1], use, 1)
if before == 0 then redis.call('PEXPIRE', KEYS[1], period) end
return {0, 1}
