-- What every change of a cart does around its own rule; prepended to add, set,
-- remove, clear, coupon and judge, each of which says what its ARGV are from 9 on.
-- Judged in this order: a merge under way, a replay, If-Match, the rule itself.
-- A refused change leaves no trace; an applied one is remembered with its key in
-- the same step.
--
-- KEYS  1 cart  2 replays
-- ARGV  1 now in ms  2 TTL in ms  3 cart id, should the cart begin here
--       4 If-Match: " <id>.<version> …", "*" or ""
--       5 digest of the idempotency key, or ""  6 fingerprint of the request
--       7 digest of a request that its client stamped, or ""
--       8 the notes of merges that could not be driven and are to be passed by, or ""
-- Reply {outcome, number, number, flat hash, ms left}. Outcomes: applied, replayed,
--       resume (a merge must be driven to its end first; nothing was done),
--       idempotency_conflict, version_mismatch, or the code of a refusal with its
--       two numbers. The hash is as it is after the change.

local cart, replays = KEYS[1], KEYS[2]
local now, ttl = tonumber(ARGV[1]), tonumber(ARGV[2])
local if_match, idempotency, fingerprint, stamped = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local hash = read(cart)

local function reply(outcome, a, b)
  return { outcome, a or 0, b or 0, flatten(hash), redis.call('PTTL', cart) }
end

local function live(member)
  local expires = redis.call('ZSCORE', replays, member)
  return expires and tonumber(expires) > now
end

-- A repeat of what was applied: by its key for a day, or, without a key, the
-- published client's own retry, which it sends 1 s or more after the first try.
local function repeated()
  if idempotency ~= '' then
    return live(idempotency .. '.' .. fingerprint)
  end
  if stamped == '' or not hash.r then return false end
  local digest, at = string.match(hash.r, '^(%S+) (%d+)$')
  local age = now - tonumber(at)
  return digest == stamped and age >= 1000 and age <= 300000
end

local function matches()
  if if_match == '' or if_match == '*' then return true end
  local current = ' ' .. (hash.i or '0') .. '.' .. (hash.v or '0') .. ' '
  return string.find(if_match, current, 1, true) ~= nil
end

-- judge returns a reply when the change must not run, and nothing when it may.
local function judge()
  if hash.m and hash.m ~= ARGV[8] then return reply('resume') end
  if repeated() then
    if hash.i then settle(cart, hash, ttl) end
    return reply('replayed')
  end
  if idempotency ~= '' and live(idempotency) then return reply('idempotency_conflict') end
  if not matches() then return reply('version_mismatch') end
end

-- accept ends a change that was allowed: changed says whether it altered anything.
local function accept(changed)
  if changed then
    put(cart, hash, 'i', hash.i or ARGV[3])
    put(cart, hash, 'v', tonumber(hash.v or 0) + 1)
    del(cart, hash, 'r')
    if stamped ~= '' then put(cart, hash, 'r', stamped .. ' ' .. ARGV[1]) end
  end
  if hash.i then
    settle(cart, hash, ttl)
    if idempotency ~= '' then
      redis.call('ZREMRANGEBYSCORE', replays, '-inf', now)
      redis.call('ZADD', replays, now + DAY, idempotency, now + DAY, idempotency .. '.' .. fingerprint)
      redis.call('PEXPIRE', replays, DAY)
    end
  end
  return reply('applied')
end

-- find turns what a client names into a line: a line's own id, or else a product's,
-- which stands for the first line in cart order that holds it. nil when there is none.
local function find(item)
  if item == '' then return nil end
  if hash[item] then return item end
  local first, first_order
  for member, value in pairs(hash) do
    if is_line(member) and product_of(member) == item then
      local _, order = parse(value)
      if not first or order < first_order then first, first_order = member, order end
    end
  end
  return first
end

local function drop(line)
  for _, member in ipairs({ line, line .. ':f', line .. ':n' }) do del(cart, hash, member) end
end
