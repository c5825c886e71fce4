-- Merge, in the customer's slot: the guest's cart has come in, or there
-- was none.
--
-- KEYS  1 customer's cart
-- ARGV  1 the note as it was read  2 TTL in ms
-- Any other note stays, and so does a later one on the same guest.

local hash = read(KEYS[1])
local others = {}
for tag, ms in string.gmatch(hash.m or '', '(%S+) (%d+)') do
  local note = tag .. ' ' .. ms
  if note ~= ARGV[1] then others[#others + 1] = note end
end
if #others > 0 then
  put(KEYS[1], hash, 'm', table.concat(others, ' '))
else
  del(KEYS[1], hash, 'm')
end
settle(KEYS[1], hash, ARGV[2])
return 1
