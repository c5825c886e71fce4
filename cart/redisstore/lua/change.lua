-- What every change of a cart does around its own rule; prepended to ops, check, and the
-- operations: add, set, edit, remove, clear, coupon and metadata. An operation is a function of the
-- hash and the place of its first argument, which is ARGV 10 if it is the only one. It judges the
-- change and puts it, and returns the code of a refusal and its number, if it has one; or else nil,
-- whether it altered anything, the line that it changed, if one remains, and whether the request
-- names that line by its ID.
-- Judged in this order: the deadline, a merge under way, a replay, If-Match, the rule itself.
-- A refused change leaves no trace; an applied one is remembered, by its key or its
-- stamp, in the same step.
--
-- KEYS  1 cart  2 its idempotency keys: only of a change that has one
-- ARGV  1 TTL in ms  2 cart id, used when the cart begins here; "": no cart may begin here
--       3 If-Match: " <id>.<version>.<mark> …", "*" or ""
--       4 digest of the idempotency key, or ""  5 fingerprint of the request
--       6 stamp: digest of a request without a key that its client stamped, or ""
--       7 the notes of merges that this change ignores, since they could not be finished:
--         " <member> <member> … "
--       8 deadline in ms: a change that begins later changes nothing, since its
--         caller was told that its outcome is unknown, and may be repeating it
--       9 mark of the version that this change makes
-- Reply {status, number, flat hash, ms left, now in ms, line}. Statuses: applied,
--       replayed, late, merge_first (a merge must be finished first; nothing was
--       done), idempotency_conflict, version_mismatch, the code of a refusal with its
--       number, or rate_limited (the cart would begin here; nothing was done). The hash is
--       as it is after the change, with '' for members that the change has removed. The line
--       is the one that an applied or replayed change has changed, if its request does not
--       name it; else "".

local cart, keys = KEYS[1], KEYS[2]
local ttl, if_match, key, fingerprint, stamp = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
-- ARGV 10 is the item of add, set, edit and remove. For the others it is another text, and a line
-- with that ID does no harm.
local now = clock()
local hash = scan(cart, ARGV[10] or '')

-- When a change with this stamp was applied; nil for never, and for a change without a stamp.
local earlier = stamp ~= '' and stamped(hash, stamp) or nil

-- left is the number of ms after which the cart expires; nil until a write sets it.
local left

local function reply(status, number, line)
  if not left then left = redis.call('PTTL', cart) end
  if stamp ~= '' then -- the caller has no use for the stamps
    for i = 1, #MEMBERS do
      local n = hash.at[MEMBERS[i]]
      if n then hash.flat[n], hash.flat[n + 1] = false, false end
    end
  end
  return { status, number or 0, hash.flat, left, now, line or '' }
end

-- accept ends a change that was allowed. changed says whether it altered anything. line is
-- the line that it changed, if the request does not name it; else nil. A change that altered
-- nothing is remembered too, because its repeat may come after a change that it would undo.
-- An unused cart stays unused.
local function accept(changed, line)
  if changed and not hash.at.i and ARGV[2] == '' then
    hash.flat = {} -- without what the rule has put
    return reply('rate_limited')
  end
  if changed then
    if not hash.at.i then put(hash, 'i', ARGV[2]) end
    advance(hash, ARGV[9])
    if not hash.at.l then put(hash, 'l', LAYOUT) end
  end
  if not hash.at.i then return reply('applied', 0, line) end
  -- What makes a repeat safe goes in the same write as the change, or right after it:
  -- Redis may end a script in the middle, as for a command that its user may not run.
  -- Of two clicks within a second the first counts: a retry of either comes a second or more
  -- after it.
  if stamp ~= '' and not (earlier and now - earlier <= STAMP_LIFE) then
    add_stamp(hash, stamp, now, not hash.in_list and line or nil) -- every read carries it: no outcomes of a list
  end
  left = lifetime(hash, ttl, now)
  write(cart, hash)
  if key ~= '' then remember(keys, use_of(key, now, fingerprint, line)) end
  expire(cart, left)
  return reply('applied', 0, line)
end

-- lines_of_product returns the indexes of a product's lines.
local function lines_of_product(hash, product)
  survey(hash)
  local same = {}
  for _, n in ipairs(hash.lines) do
    if string.match(hash.flat[n], '^%d+') == product then same[#same + 1] = n end
  end
  return same
end

-- find_line is the index of the line that an item names: the line of that id, or else,
-- where it names a product, that product's first line in cart order; nil for none. In a list, it
-- can only name a line.
local function find_line(hash, item)
  local first, lowest = index(hash, item), nil
  if first or hash.in_list or string.find(item, '%D') then return first end
  for _, n in ipairs(lines_of_product(hash, item)) do
    local _, order = parse(hash.flat[n + 1])
    order = tonumber(order)
    if not first or order < lowest then first, lowest = n, order end
  end
  return first
end

-- held_of_product is the quantity that all lines of an item's product hold.
local function held_of_product(hash, item)
  local sum = 0
  for _, n in ipairs(lines_of_product(hash, string.match(item, '^%d*'))) do sum = sum + parse(hash.flat[n + 1]) end
  return sum
end

local function drop_line(hash, n)
  local line = hash.flat[n]
  drop(hash, n)
  drop(hash, index(hash, line .. ':f'))
  drop(hash, index(hash, line .. ':n'))
  drop(hash, index(hash, line .. ':m'))
end

-- conclude ends a change that consists of one operation, with what that returned.
local function conclude(code, number, line, named)
  if code then return reply(code, number) end
  return accept(number, not named and line or nil)
end

if now > tonumber(ARGV[8]) then return reply('late') end

for _, n in ipairs(hash.notes) do
  if not is_applied(hash.flat[n + 1]) and not string.find(ARGV[7], ' ' .. hash.flat[n] .. ' ', 1, true) then
    return reply('merge_first')
  end
end

local applied, applied_under
if key ~= '' then applied, applied_under = known(keys, key, now) end
if applied and applied ~= fingerprint then return reply('idempotency_conflict') end
if applied or is_retry(earlier, now) then
  if hash.at.i then left = settle(cart, hash, ttl, now) end
  return reply('replayed', 0, applied and line_under(keys, key, applied_under) or get(hash, 'e' .. stamp))
end

if if_match ~= '' and if_match ~= '*' then
  local current = ' ' .. (get(hash, 'i') or '0') .. '.' .. (get(hash, 'v') or '0.0') .. ' '
  if not string.find(if_match, current, 1, true) then return reply('version_mismatch') end
end
