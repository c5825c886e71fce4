-- Merge, in the customer's slot: notes which guest cart is about to come
-- in, before it is claimed, so that whoever comes next can take up a broken merge.
-- Notes on other guests stay: each of a customer's devices may bring one along.
--
-- KEYS  1 customer's cart
-- ARGV  1 guest's tag  2 now in ms  3 TTL in ms
-- Reply the note: "<tag> <ms>", unlike any earlier one on this guest that it replaces,
--       whatever the clock says, since a slower request may yet forget that one

local tag, at = ARGV[1], tonumber(ARGV[2])
local hash = read(KEYS[1])
local others = {}
for other, ms in string.gmatch(hash.m or '', '(%S+) (%d+)') do
  if other == tag then
    at = math.max(at, tonumber(ms) + 1)
  else
    others[#others + 1] = other .. ' ' .. ms
  end
end
local note = string.format('%s %d', tag, at)
others[#others + 1] = note
put(KEYS[1], hash, 'm', table.concat(others, ' '))
settle(KEYS[1], hash, ARGV[3])
return note
