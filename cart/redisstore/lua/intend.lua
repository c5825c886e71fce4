-- Merge, in the customer's slot: notes which guest's cart is about to come in, before
-- it is claimed, so that whoever comes next can take up a broken merge. The note also
-- reserves room for what the guest brings, so that merges cannot make a cart grow
-- without bound. Each request writes a note of its own, and no other.
--
-- KEYS  1 customer's cart
-- ARGV  1 member of the note  2 TTL in ms  3 guest's digest
--       4 lines and 5 bytes of text that the guest brings, 6 the guest's cart id, cut
--       7 most lines and 8 most bytes of text after a merge
-- Reply "noted"; "full", or "crowded" where too many merges are under way: no note was
--       written then

local NOTES = 32
local cart, own = KEYS[1], ARGV[1]
local lines, text = tonumber(ARGV[4]), tonumber(ARGV[5])

local hash = read(cart)
local held = tally(hash, '')

-- Requests that bring the same cart reserve it once.
local notes, reserved = 0, { [ARGV[6]] = { lines = lines, text = text } }
for member, note in pairs(hash) do
  if string.find(member, '^m') and member ~= own then
    notes = notes + 1
    local its_lines, its_text, id = string.match(note, '(%d+) (%d+) (%S+)$')
    local r = reserved[id] or { lines = 0, text = 0 }
    reserved[id] = { lines = math.max(r.lines, tonumber(its_lines)), text = math.max(r.text, tonumber(its_text)) }
  end
end
for _, r in pairs(reserved) do
  held.lines = held.lines + r.lines
  held.text = held.text + r.text
end
if lines > 0 and held.lines > tonumber(ARGV[7]) or text > 0 and held.text > tonumber(ARGV[8]) then
  return 'full'
end
if notes >= NOTES then return 'crowded' end

put(cart, hash, own, string.format('%s %d %d %d %s', ARGV[3], math.floor(clock() / 1000), lines, text, ARGV[6]))
settle(cart, hash, ARGV[2])
return 'noted'
