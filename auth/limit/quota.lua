-- Counts uses of a client against its rates.
--
-- KEYS  1 the client's hash: period in ms -> the ms at which all uses will have come back
-- ARGV  1 how many uses; then for each rate: its period in ms, the ms in which one use comes back, and the bound
--       of what is stored, in ms from now
-- Reply the ms that the client must wait for its next use, 0: it need not wait; and the index
--       of the rate that it must wait for. The key expires when all uses have come back.

-- The clock may have been set back, or be that of another server after a failover. Then stored
-- times are in the far future. So each is bounded to what the clock of now could have stored.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local wait, rate, life = 0, 0, 1
for i = 2, #ARGV, 3 do
  local period, interval = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local stored = math.min(tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0), now + tonumber(ARGV[i + 2]))
  local whole = math.max(stored, now) + ARGV[1] * interval
  redis.call('HSET', KEYS[1], ARGV[i], string.format('%.3f', whole))
  if whole + interval - period - now > wait then
    wait, rate = whole + interval - period - now, (i - 2) / 3
  end
  life = math.max(life, whole - now)
end
redis.call('PEXPIRE', KEYS[1], math.ceil(life))
return {math.ceil(wait), rate}
