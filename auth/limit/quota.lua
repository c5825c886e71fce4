-- Counts one use of a client against its rates.
--
-- KEYS  1 the client's hash: period in ms -> the ms at which all uses will have come back
-- ARGV  for each rate: its period in ms, and the ms in which one use comes back
-- Reply the ms that the client must wait for its next use, 0: it need not wait; and the number
--       of the rate that it must wait for, from 1. The key expires when all uses have come back.

-- The clock may have been set back, or be that of another server after a failover. Then stored
-- times are in the far future. So each is bounded to what the clock of now could have stored:
-- a used-up rate, and uses that were in flight then.
local maxLate, maxLatePeriods = 1000, 4

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local wait, rate, life = 0, 1, 1
for i = 1, #ARGV, 2 do
  local period, interval = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local latest = now + period + math.min(maxLate * interval, maxLatePeriods * period)
  local stored = math.min(tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0), latest)
  local whole = math.max(stored, now) + interval
  redis.call('HSET', KEYS[1], ARGV[i], string.format('%.3f', whole))
  if whole + interval - period - now > wait then
    wait, rate = whole + interval - period - now, (i + 1) / 2
  end
  life = math.max(life, whole - now)
end
redis.call('PEXPIRE', KEYS[1], math.ceil(life))
return {math.ceil(wait), rate}
