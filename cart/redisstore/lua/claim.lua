-- Merge, in the guest's slot: sets the guest's cart aside for its new owner. The token can
-- be used again immediately: the next add under it creates a cart with a new id. A token
-- has at most one claim. The guest's key keeps a copy of the stamps, so that a retry that
-- still goes there is recognized; and the notes of merges into the guest's cart, whose lines
-- arrive in the token's next cart. Until all replicas have the lines that arrived, the cart is not
-- claimed: a failover could lose them, and they would arrive a second time, in another cart.
--
-- KEYS  1 guest's cart  2 claimed sibling  3 guest's idempotency keys  4 mark of a hand-over
-- ARGV  1 owner's tag  2 TTL of the claim in ms, never renewed
--       3 the note under which to claim, or "" to only find again what this owner had
--         claimed before
--       4 deadline in ms for a new claim  5 the guest's cart id, cut, 6 lines and
--       7 bytes of text, as the note has reserved them  8 TTL of a guest's cart in ms
--       9 the mark that a new claim leaves, "" for none: the tag of the cart where an agent
--         finds its cart again, or "-" if it does not  10 a random name for a new claim
-- Replies:
--   {"other", tag}                another owner's claim must be merged first
--   {"nothing"}                   there is no claim, and no cart or no note to claim under
--   {"merging"}                   a merge into the guest's cart must be finished first
--   {"late"}                      the deadline has passed
--   {"grown", id, lines, bytes}   the reservation does not fit the cart
--   {"claimed", "<note> <name>", flat hash, flat keys}
--                                 "again" instead of "claimed" if an earlier call claimed it, with
--                                 the note and the name of that call. The keys are those that the
--                                 token had when it was claimed: a later one stands for a
--                                 change of a later cart, which a failover may lose unmerged.
--                                 The error of announce follows, if there was one

local guest, claimed = KEYS[1], KEYS[2]

-- use names one use of a key: a key can be used again when it is forgotten.
local function use(keys, n) return ' ' .. keys[n] .. '=' .. (string.match(keys[n + 1], '^%d+') or '') .. ' ' end

-- claimed_keys returns those of the token's keys that came before the claim.
local function claimed_keys()
  local keys, uses, before = redis.call('HGETALL', KEYS[3]), redis.call('HGET', claimed, 'k'), {}
  if not uses then return keys end -- claimed by an earlier release
  for n = 1, #keys, 2 do
    if string.find(uses, use(keys, n), 1, true) then
      before[#before + 1] = keys[n]
      before[#before + 1] = keys[n + 1]
    end
  end
  return before
end

local owner, claim = string.match(redis.call('HGET', claimed, 'o') or '', '^(%S+) (.*)$')
if owner and owner ~= ARGV[1] then return { 'other', owner } end
if owner then
  touch(claimed)
  return { 'again', claim, scan(claimed).flat, claimed_keys() }
end

local hash = scan(guest)
survey(hash)
local id, lines, text = get(hash, 'i'), hash.count, hash.text
if ARGV[3] == '' or not id then return { 'nothing' } end
for _, n in ipairs(hash.notes) do
  if string.sub(hash.flat[n + 1], -8) == ' applied' then return { 'merging' } end
end
local now = clock()
if now > tonumber(ARGV[4]) then return { 'late' } end
if string.sub(id, 1, #ARGV[5]) ~= ARGV[5] or lines > tonumber(ARGV[6]) or text > tonumber(ARGV[7]) then
  return { 'grown', id, lines, text }
end

local keys, uses = redis.call('HGETALL', KEYS[3]), {}
for n = 1, #keys, 2 do uses[#uses + 1] = use(keys, n) end
redis.call('RENAME', guest, claimed)
claim = ARGV[3] .. ' ' .. ARGV[10]
redis.call('HSET', claimed, 'o', ARGV[1] .. ' ' .. claim, 'k', table.concat(uses))
redis.call('PEXPIRE', claimed, ARGV[2])
if ARGV[9] ~= '' then
  redis.call('HSET', KEYS[4], 't', ARGV[9])
  redis.call('PEXPIRE', KEYS[4], ARGV[8])
end
-- The fence goes on: otherwise a copy of a commit that has expected no cart could run on the absence.
local kept = scan(guest)
for n = 1, #hash.flat, 2 do
  local first = string.byte(hash.flat[n])
  if first == 114 or first == 101 or first == 109 or first == 110 then put(kept, hash.flat[n], hash.flat[n + 1]) end -- r, e, m, n
end
put(kept, 'l', LAYOUT)
settle(guest, kept, ARGV[8], now)
return { 'claimed', claim, hash.flat, keys, announce(guest, hash, 'gone') }
