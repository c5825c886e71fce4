-- Idempotency keys of the changes applied to a cart: a hash beside it, so that a read
-- of the cart does not carry them.
--   <digest of the key>   "<ms when applied> <fingerprint of the request>"

local KEYS_KEPT = 256   -- of a cart, the newest
local KEY_LIFE = DAY

-- known is the fingerprint of the change that was applied under a key, if any was.
local function known(keys, key, now)
  local at, fingerprint = string.match(redis.call('HGET', keys, key) or '', '^(%d+) (%S+)$')
  if at and now - tonumber(at) < KEY_LIFE then return fingerprint end
end

-- trim keeps the newest keys. It reads all of them, which are few.
local function trim(keys)
  local excess = redis.call('HLEN', keys) - KEYS_KEPT
  if excess <= 0 then return end
  local flat = redis.call('HGETALL', keys)
  local at, times = {}, {}
  for i = 1, #flat, 2 do
    at[flat[i]] = tonumber(string.match(flat[i + 1], '^%d+'))
    times[#times + 1] = at[flat[i]]
  end
  table.sort(times)
  for i = 1, #flat, 2 do
    if excess > 0 and at[flat[i]] <= times[#times - KEYS_KEPT] then
      redis.call('HDEL', keys, flat[i])
      excess = excess - 1
    end
  end
end

-- remember adds keys, given as a flat list of hash members and values.
local function remember(keys, added)
  if #added == 0 then return end
  redis.call('HSET', keys, unpack(added))
  trim(keys)
  redis.call('PEXPIRE', keys, KEY_LIFE)
end
