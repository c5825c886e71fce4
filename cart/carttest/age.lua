-- Makes a cart older: all times in it become earlier, and its TTL shorter. Like each write, that appends a mark to
-- the member n, so nobody decides from what was there.
--
-- KEYS  1 one of the cart's keys
-- ARGV  1 ms

local passed = tonumber(ARGV[1])

local function age(key, member, value)
  if member == 'n' and not string.find(key, ':claimed$') and not string.find(key, ':offered:') then
    redis.call('HSET', key, member, string.sub(value .. string.format('%06d', redis.call('TIME')[2]), -60))
  elseif string.find(key, ':keys$') or string.find(key, ':came$') or string.find(key, ':results$') and #member > 1 then
    local ms, rest = string.match(value, '^(%d+)(.*)$')
    redis.call('HSET', key, member, string.format('%d', tonumber(ms) - passed) .. rest) -- a result has zero bytes
  elseif string.find(key, ':shares:') and #member > 1 then
    local seconds, rest = string.match(value, '^(%d+)(.*)$')
    redis.call('HSET', key, member, string.format('%d', math.floor(tonumber(seconds) - passed / 1000)) .. rest)
  elseif member == 'x' then
    redis.call('HSET', key, member, string.format('%d', math.floor(tonumber(value) - passed / 1000)))
  elseif string.find(member, '^r%d$') then
    local aged = ''
    for n = 1, #value, 12 do
      local ms = 0
      for i = n + 6, n + 11 do ms = ms * 256 + string.byte(value, i) end
      ms = ms - passed
      aged = aged .. string.sub(value, n, n + 5)
      for power = 5, 0, -1 do aged = aged .. string.char(math.floor(ms / 256 ^ power) % 256) end
    end
    redis.call('HSET', key, member, aged)
  elseif member == 'k' then
    local function aged(ms) return string.format('=%d', tonumber(ms) - passed) end
    redis.call('HSET', key, member, (string.gsub(value, '=(%d+)', aged)))
  elseif member == 'g' then
    local ms, rest = string.match(value, '^(%d+)(.*)$')
    redis.call('HSET', key, member, string.format('%d%s', tonumber(ms) - passed, rest))
  elseif member == 'b' then
    local function aged(id, seconds) return string.format('%s %d', id, tonumber(seconds) - math.floor(passed / 1000)) end
    redis.call('HSET', key, member, (string.gsub(value, '(%S+) (%d+)', aged)))
  elseif string.find(member, '^m.') then
    local guest, seconds, rest = string.match(value, '^(%S+) (%d+)(.*)$')
    redis.call('HSET', key, member, string.format('%s %d%s', guest, tonumber(seconds) - math.floor(passed / 1000), rest))
  end
end

local key = KEYS[1]
if redis.call('TYPE', key).ok == 'hash' then
  local flat = redis.call('HGETALL', key)
  for i = 1, #flat, 2 do age(key, flat[i], flat[i + 1]) end
end
local left = redis.call('PTTL', key)
if left >= 0 then redis.call('PEXPIRE', key, left - passed) end
return 1
