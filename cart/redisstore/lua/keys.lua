-- Idempotency keys of the changes applied to a cart: a separate hash, so that reading the
-- cart does not read them.
--   <digest of the key>   "<ms when applied> <fingerprint of the request>"

local KEYS_KEPT = 256   -- of a cart, the newest
local KEY_LIFE = DAY

-- known returns the fingerprint of the change that was applied under a key; nil for none.
local function known(keys, key, now)
  local ms, fingerprint = string.match(redis.call('HGET', keys, key) or '', '^(%d+) (%S+)$')
  if ms and now - tonumber(ms) < KEY_LIFE then return fingerprint end
end

-- trim keeps the newest keys. It reads all of them, which are few.
local function trim(keys)
  local excess = redis.call('HLEN', keys) - KEYS_KEPT
  if excess <= 0 then return end
  local all = redis.call('HGETALL', keys)
  local ms, times, old = {}, {}, {}
  for n = 1, #all, 2 do
    local time = tonumber(string.match(all[n + 1], '^%d+'))
    ms[n], times[#times + 1] = time, time
  end
  local bound, at_bound = age_limit(times, excess)
  for n = 1, #all, 2 do
    local last = ms[n] == bound and at_bound > 0
    if last then at_bound = at_bound - 1 end
    if last or ms[n] < bound then old[#old + 1] = all[n] end
  end
  redis.call('HDEL', keys, unpack(old))
end

-- remember adds keys, given as a flat list of hash members and values.
local function remember(keys, added)
  if #added == 0 then return end
  redis.call('HSET', keys, unpack(added))
  trim(keys)
  redis.call('PEXPIRE', keys, KEY_LIFE)
end
