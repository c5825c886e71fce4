-- Ends an attempt of an agent's keyed call; see attempt.lua.
--
-- KEYS  1 the results
-- ARGV  1 digest of the key  2 fingerprint  3 until when the attempt may run  4 its result, or "" for none
-- Reply: the result that is kept: of all attempts, the first one; "" for none

local ms, fingerprint, result = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) (%S+) (.*)$')
if fingerprint ~= ARGV[2] then return '' end
if result == '' and (ARGV[4] ~= '' or ms == ARGV[3]) then -- without a result, another attempt may run on
  result = ARGV[4]
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%d %s ', clock(), fingerprint) .. result)
  redis.call('PEXPIRE', KEYS[1], DAY)
end
return result
