-- What every change of a cart does around its own rule; prepended to add, set,
-- remove, clear, coupon and judge, each of which says what its ARGV are from 9 on.
-- Judged in this order: a merge under way, a replay, If-Match, the rule itself.
-- A refused change leaves no trace; an applied one is remembered, by its key or its
-- stamp, in the same step.
--
-- KEYS  1 cart  2 its idempotency keys: only of a change that has one
-- ARGV  1 TTL in ms  2 cart id, should the cart begin here
--       3 If-Match: " <id>.<version> …", "*" or ""
--       4 digest of the idempotency key, or ""  5 fingerprint of the request
--       6 stamp: digest of a request without a key that its client stamped, or ""
--       7 the notes of merges that could not be driven and are to be passed by:
--         " <member> <member> … ", or ""
--       8 deadline in ms: a change that begins later changes nothing, since its
--         caller was told that its outcome is unknown, and may be repeating it
-- Reply {outcome, number, number, flat hash, ms left, now in ms}. Outcomes: applied,
--       replayed, late, resume (a merge must be driven to its end first; nothing was
--       done), idempotency_conflict, version_mismatch, or the code of a refusal with
--       its two numbers. The hash is as it is after the change.

local cart, keys = KEYS[1], KEYS[2]
local ttl, if_match, key, fingerprint, stamp = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local now = clock()
local hash = read(cart)

local function reply(outcome, a, b)
  return { outcome, a or 0, b or 0, flatten(hash), redis.call('PTTL', cart), now }
end

-- merging reports whether a merge is under way that this change does not pass by.
local function merging()
  for member in pairs(hash) do
    if string.find(member, '^m') and not string.find(ARGV[7], ' ' .. member .. ' ', 1, true) then
      return true
    end
  end
  return false
end

local function matches()
  if if_match == '' or if_match == '*' then return true end
  local current = ' ' .. (hash.i or '0') .. '.' .. (hash.v or '0') .. ' '
  return string.find(if_match, current, 1, true) ~= nil
end

local function replayed()
  if hash.i then settle(cart, hash, ttl) end
  return reply('replayed')
end

-- judge returns a reply when the change must not run, and nothing when it may.
local function judge()
  if now > tonumber(ARGV[8]) then return reply('late') end
  if merging() then return reply('resume') end
  local applied = key ~= '' and known(keys, key, now)
  if applied then
    return applied == fingerprint and replayed() or reply('idempotency_conflict')
  end
  if stamp ~= '' and is_retry(hash, stamp, now) then return replayed() end
  if not matches() then return reply('version_mismatch') end
end

-- accept ends a change that was allowed: changed says whether it altered anything.
-- One that altered nothing is remembered too: its repeat may come after a change that
-- it would undo. A cart never used stays unused.
local function accept(changed)
  if changed then
    put(cart, hash, 'i', hash.i or ARGV[2])
    put(cart, hash, 'v', string.format('%d', tonumber(hash.v or 0) + 1))
  end
  if hash.i then
    -- First what makes a repeat safe: Redis may end a script in the middle, as for a
    -- command that its user may not run.
    if key ~= '' then remember(keys, { key, string.format('%d %s', now, fingerprint) }) end
    if stamp ~= '' then stamp_at(cart, hash, 'r' .. stamp, now, now) end
    sweep(cart, hash, now)
    settle(cart, hash, ttl)
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
