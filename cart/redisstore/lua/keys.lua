-- Idempotency keys of the changes applied to a cart: a separate hash, so that reading the
-- cart does not read them.
--   <digest of the key>     "<ms when applied> <fingerprint of the request> <what it changed>" (see keyuse.go)

local KEYS_KEPT = 256   -- of a cart, the newest
local KEY_LIFE = DAY

-- trim keeps the newest keys.
local function trim(keys)
  local all, by_age = redis.call('HGETALL', keys), {}
  for n = 1, #all, 2 do by_age[#by_age + 1] = { key = all[n], ms = tonumber(string.match(all[n + 1], '^%d+')) } end
  table.sort(by_age, function(a, b) return a.ms < b.ms end)
  for n = 1, #by_age - KEYS_KEPT do redis.call('HDEL', keys, by_age[n].key) end
end

-- remember adds keys, given as a flat list of hash members and values.
local function remember(keys, added)
  if #added == 0 then return end
  redis.call('HSET', keys, unpack(added))
  trim(keys)
  redis.call('PEXPIRE', keys, KEY_LIFE)
end
