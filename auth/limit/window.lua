-- Counts a use of a client in the period that begins with its first use.
--
-- KEYS  1 the client's hash: use -> 1. It expires when the period ends
-- ARGV  1 the most uses  2 the period in ms  3 the use's own name, which counts once; "" only asks
-- Reply the uses so far with this one, one more than the most if it is refused; and the ms until the
--       period ends, negative if none has begun

local most, period, use = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local uses = redis.call('HLEN', KEYS[1])
if uses >= most then return {most + 1, math.max(redis.call('PTTL', KEYS[1]), 1)} end
if use ~= '' and redis.call('HSETNX', KEYS[1], use, 1) == 1 then
  uses = uses + 1
  if uses == 1 then redis.call('PEXPIRE', KEYS[1], period) end
end
return {uses, redis.call('PTTL', KEYS[1])}
