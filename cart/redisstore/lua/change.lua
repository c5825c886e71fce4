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
-- One of plain.lua, keyed.lua and stamped.lua comes before this file, for a change that a retry
-- would make again, or whose retries are known by an idempotency key or by a stamp:
--   find_repeat      returns replayed, with the line of the reply, and for a key when the change was
--                    applied; or a refusal; nil for a new change
--   remember_change  remembers an applied change: in the cart, or by returning the arguments of
--                    remember
--   hide_stamps      removes the stamps from the reply
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
--       replayed (with when, in ms, for a key), late, merge_first (a merge must be finished first; nothing was
--       done), idempotency_conflict, version_mismatch, the code of a refusal with its
--       number, or rate_limited (the cart would begin here; nothing was done). The hash is
--       as it is after the change, with '' for members that the change has removed. The line
--       is the one that an applied or replayed change has changed, if its request does not
--       name it; else "". The error of announce follows, if there was one.

local cart, keys = KEYS[1], KEYS[2]
local now = clock()
-- ARGV 10 is the item of add, set, edit and remove. For the others it is another text, and a line
-- with that ID does no harm.
local hash = scan(cart, ARGV[10] or '')

local function reply(status, number, line, left, failed)
  if hide_stamps then hide_stamps(hash) end
  return { status, number or 0, hash.flat, left or redis.call('PTTL', cart), now, line or '', failed }
end

-- accept ends a change that was allowed. changed says whether it altered anything. line is
-- the line that it changed, if the request does not name it; else nil. A change that altered
-- nothing is remembered too, because its repeat may come after a change that it would undo.
-- An unused cart stays unused; but its keys remember the outcomes of a list, which its repeat tells again.
local function accept(changed, line)
  local at = hash.at
  if changed then
    if not at.i then
      if ARGV[2] == '' then
        hash.flat = {} -- without what the rule has put
        return reply('rate_limited')
      end
      put(hash, 'i', ARGV[2])
    end
    advance(hash, ARGV[9])
    if not at.l then put(hash, 'l', LAYOUT) end
  end
  if not at.i and hash.in_list and ARGV[4] ~= '' then
    if ARGV[2] == '' then return reply('rate_limited') end
    remember(keys, remember_change(hash, now, line))
  end
  if not at.i then return reply('applied', 0, line) end
  -- What makes a repeat safe goes in the same write as the change, or right after it:
  -- Redis may end a script in the middle, as for a command that its user may not run.
  local use = remember_change and remember_change(hash, now, line)
  local left, kept = lifetime(hash, ARGV[1], now)
  write(cart, hash)
  if use then remember(keys, use) end
  expire(cart, left, kept)
  if not changed then touch(cart) end -- another request may have changed it to the same
  return reply('applied', 0, line, left, changed and announce(cart, hash) or nil)
end

if now > tonumber(ARGV[8]) then return reply('late') end

for _, n in ipairs(hash.notes) do
  local applied = string.sub(hash.flat[n + 1], -8) == ' applied' -- the lines are in the customer's cart
  if not applied and not string.find(ARGV[7], ' ' .. hash.flat[n] .. ' ', 1, true) then return reply('merge_first') end
end

if find_repeat then
  local found, line, ms = find_repeat(hash, now)
  if found == 'replayed' then
    touch(keys or cart)
    return reply(found, ms, line, hash.at.i and settle(cart, hash, ARGV[1], now))
  end
  if found then return reply(found) end
end

local if_match = ARGV[3]
if if_match ~= '' and if_match ~= '*' then
  local current = ' ' .. (get(hash, 'i') or '0') .. '.' .. (get(hash, 'v') or '0.0') .. ' '
  if not string.find(if_match, current, 1, true) then return reply('version_mismatch') end
end
