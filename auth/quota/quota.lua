-- Counts one use of a client against its rates.
--
-- KEYS  1 the client's hash: period in ms -> the time in ms at which all uses are restored
-- ARGV  for each rate: its period in ms, and the ms in which one use is restored
-- Reply the ms that the client must wait for its next use; 0: it need not wait. The key
--       expires when all uses are restored.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local wait, life = 0, 1
for i = 1, #ARGV, 2 do
  local period, interval = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local whole = math.max(tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0), now) + interval
  redis.call('HSET', KEYS[1], ARGV[i], string.format('%.3f', whole))
  wait = math.max(wait, whole + interval - period - now)
  life = math.max(life, whole - now)
end
redis.call('PEXPIRE', KEYS[1], math.ceil(life))
return math.ceil(wait)
