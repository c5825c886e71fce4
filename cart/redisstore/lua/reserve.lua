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

-- reserved returns the reserved lines and bytes of text, and the number of notes. Notes of the
-- same guest's cart share their room. own is a note that does not count. rooms has the room that
-- is reserved in addition to the notes, by guest's cart id: { lines, text }.
local function reserved(hash, own, rooms)
  local lines, text, notes = 0, 0, 0
  for _, n in ipairs(hash.notes) do
    if hash.flat[n] ~= own then
      notes = notes + 1
      local its_lines, its_text, id = string.match(hash.flat[n + 1], '^%S+ %d+ (%d+) (%d+) (%S+)')
      local r = rooms[id] or { lines = 0, text = 0 }
      r.lines, r.text = math.max(r.lines, tonumber(its_lines)), math.max(r.text, tonumber(its_text))
      rooms[id] = r
    end
  end
  for _, r in pairs(rooms) do
    lines, text = lines + r.lines, text + r.text
  end
  return lines, text, notes
end

local cart, own = KEYS[1], ARGV[1]
local lines, text = tonumber(ARGV[4]), tonumber(ARGV[5])

local hash = scan(cart)
local now = clock()
-- The tries of a hand-over share a note. A late one must not hide from claim that the lines are here: a failover may lose them.
if string.find(get(hash, own) or '', ' ' .. ARGV[6] .. ' applied', 1, true) then
  settle(cart, hash, ARGV[2], now)
  return 'noted'
end
survey(hash)

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
