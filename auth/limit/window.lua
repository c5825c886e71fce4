-- Counts a use of a client in the period that begins with its first use, or takes one back.
--
-- KEYS  1 the client's hash: n -> its uses. It expires when the period ends
-- ARGV  1 the most uses  2 the period in ms  3 "1" to count a use, "-1" to take one back
-- Reply the ms until the period ends if the use is one too many, which is not counted, else 0; and
--       1, the number of the rate

local most, period, change = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local before = tonumber(redis.call('HGET', KEYS[1], 'n') or 0)
local after = before + change
if after > most then return {math.max(redis.call('PTTL', KEYS[1]), 1), 1} end
if after >= 0 then
  redis.call('HSET', KEYS[1], 'n', after)
  if before == 0 then redis.call('PEXPIRE', KEYS[1], period) end
end
return {0, 1}
