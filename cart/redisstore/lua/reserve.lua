-- Merge, in the owner's slot: notes which guest's cart is to be merged, before it is
-- claimed, so that the next request can finish a broken merge. The note also reserves room
-- for the guest's lines, so that merges cannot make a cart grow without limit. Each request
-- writes only its own note.
--
-- KEYS  1 owner's cart
-- ARGV  1 member of the note  2 TTL in ms  3 guest's digest
--       4 lines and 5 bytes of text that the guest brings, 6 the guest's cart id, cut
--       7 maximum number of lines and 8 maximum bytes of text after a merge
-- Replies: noted; full; crowded (too many merges). Only noted has written a note.

local NOTES = 32
local cart, own = KEYS[1], ARGV[1]
local lines, text = tonumber(ARGV[4]), tonumber(ARGV[5])

local hash = scan(cart, '')
local now = clock()
-- The tries of a hand-over share a note. A late one must not hide from claim that the lines are here: a failover may lose them.
if string.find(get(hash, own) or '', ' ' .. ARGV[6] .. ' applied', 1, true) then
  settle(cart, hash, ARGV[2], now)
  return 'noted'
end
survey(hash)

local _, _, _, _, reserved = room()
local reserved_lines, reserved_text, others = reserved(hash, own, { [ARGV[6]] = { lines = lines, text = text } })
local all_lines, all_text = hash.count + reserved_lines, hash.text + reserved_text
if lines > 0 and all_lines > tonumber(ARGV[7]) or text > 0 and all_text > tonumber(ARGV[8]) then
  return 'full'
end
if others >= NOTES then return 'crowded' end

put(hash, own, string.format('%s %d %d %d %s', ARGV[3], math.floor(now / 1000), lines, text, ARGV[6]))
if not hash.at.l then put(hash, 'l', LAYOUT) end
settle(cart, hash, ARGV[2], now)
return 'noted'
