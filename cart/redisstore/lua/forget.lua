-- Merge, in the customer's slot: drops notes whose merge has come to its end, or had
-- nothing to claim.
--
-- KEYS  1 customer's cart
-- ARGV  1 TTL in ms  2 age in seconds from which a note is dropped, 0 for any
--       3 … members of the notes

local hash = read(KEYS[1])
local seconds = clock() / 1000
for i = 3, #ARGV do
  local at = string.match(hash[ARGV[i]] or '', ' (%d+) %d+ %d+ %S+$')
  if at and seconds - tonumber(at) >= tonumber(ARGV[2]) then del(KEYS[1], hash, ARGV[i]) end
end
settle(KEYS[1], hash, ARGV[1])
return 1
