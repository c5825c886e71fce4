-- Merge, in the owner's slot: deletes notes whose merge is finished, or had nothing to claim.
--
-- KEYS  1 owner's cart
-- ARGV  1 TTL in ms  2 age in seconds from which a note is dropped, 0 for any  3 1 if also one whose lines are here
--       4 … members of the notes

local hash = scan(KEYS[1])
local now = clock()
for i = 4, #ARGV do
  local began, applied = string.match(get(hash, ARGV[i]) or '', '^%S+ (%d+) %d+ %d+ %S+( ?)')
  if began and (applied == '' or ARGV[3] == '1') and now / 1000 - tonumber(began) >= tonumber(ARGV[2]) then drop(hash, hash.at[ARGV[i]]) end
end
settle(KEYS[1], hash, ARGV[1], now)
return 1
