-- Idempotency keys of the changes applied to a cart: a separate hash, so that reading the
-- cart does not read them.
--   <digest of the key>     "<ms when applied> <fingerprint of the request> <what it changed>" (see keyuse.go)

local KEYS_KEPT = 256   -- of a cart, the newest
local KEY_LIFE = DAY

-- trim keeps the newest keys. It reads all of them, which are few.
local function trim(keys)
  if redis.call('HLEN', keys) <= KEYS_KEPT then return end
  -- age_limit is for dropping the excess oldest of some times: all before the bound go, and
  -- as many at the bound itself. One too many is the usual case, and needs no sorting.
  local function age_limit(times, excess)
    if excess == 1 then return math.min(unpack(times)), 1 end
    table.sort(times)
    local bound, at_bound = times[excess], 0
    for i = 1, excess do
      if times[i] == bound then at_bound = at_bound + 1 end
    end
    return bound, at_bound
  end

  local all = redis.call('HGETALL', keys)
  local ms, times, old = {}, {}, {}
  for n = 1, #all, 2 do
    ms[n] = tonumber(string.match(all[n + 1], '^%d+'))
    times[#times + 1] = ms[n]
  end
  if #times <= KEYS_KEPT then return end
  local bound, at_bound = age_limit(times, #times - KEYS_KEPT)
  for n, time in pairs(ms) do
    local last = time == bound and at_bound > 0
    if last then at_bound = at_bound - 1 end
    if last or time < bound then
      old[#old + 1] = all[n]
    end
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
