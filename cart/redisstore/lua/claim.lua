-- Merge, in the guest's slot: takes the guest's cart aside for one customer. The token
-- is free at once: what is added under it from now on begins a cart with an id of its
-- own. A token has at most one claim. The guest's key keeps a copy of the stamps, so
-- that a retry that still goes there is recognized.
--
-- KEYS  1 guest's cart  2 claimed sibling  3 guest's idempotency keys
-- ARGV  1 owner's tag  2 TTL of the claim in ms, never renewed
--       3 the note under which to claim, or "" to only find again what this owner had
--         claimed before
--       4 deadline in ms for a new claim  5 the guest's cart id, cut, 6 lines and
--       7 bytes of text, as the note has reserved them
-- Reply {"nothing"}; {"late"}; {"other", tag} when another customer's claim must be
--       driven first; {"grown", id, lines, bytes} when the reservation does not fit; or
--       {"claimed" now or "again", note of the claim, flat hash, flat keys}

local guest, claimed = KEYS[1], KEYS[2]

local function reply(outcome, note, hash)
  return { outcome, note, flatten(hash), redis.call('HGETALL', KEYS[3]) }
end

local owner, note = string.match(redis.call('HGET', claimed, 'o') or '', '^(%S+) ?(%S*)$')
if owner and owner ~= ARGV[1] then return { 'other', owner } end
if owner then return reply('again', note, read(claimed)) end

local hash = read(guest)
if ARGV[3] == '' or not hash.i then return { 'nothing' } end
if clock() > tonumber(ARGV[4]) then return { 'late' } end
local id, held = string.sub(hash.i, 1, string.len(ARGV[5])), tally(hash, '')
if id ~= ARGV[5] or held.lines > tonumber(ARGV[6]) or held.text > tonumber(ARGV[7]) then
  return { 'grown', hash.i, held.lines, held.text }
end

redis.call('RENAME', guest, claimed)
redis.call('HSET', claimed, 'o', ARGV[1] .. ' ' .. ARGV[3])
redis.call('PEXPIRE', claimed, ARGV[2])
local left = {}
for member, at in pairs(hash) do
  if is_stamp(member) then put(guest, left, member, at) end
end
settle(guest, left, 0)
return reply('claimed', ARGV[3], hash)
