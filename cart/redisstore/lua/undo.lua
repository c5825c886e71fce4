-- Undo of a merge, in the customer's slot: takes out of the cart what a merge has brought, once, and only
-- if the cart is still the one for which that was computed.
--
-- KEYS  1 customer's cart  2 what the merge has brought, as apply.lua has it
-- ARGV  1 cart TTL in ms  2 "<id>.<version>.<mark>" of the cart; "" only asks what an earlier call did
--       3 name of the guest's cart that gets what is taken out  4 the adjusted lines, as in a report
--       5 mark of the version that this makes  6 … members of the cart with their new values: of a line
--       its quantity, "" to remove the member
-- Replies:
--   {"unknown"}                 nothing is known of the merge
--   {"undone", name, adjusted}  by this call, or by an earlier one with that name. The error of announce
--                               follows, if there was one
--   {"changed"}                 the cart is another one; nothing was done

local cart, came = KEYS[1], KEYS[2]
if redis.call('EXISTS', came) == 0 then return { 'unknown' } end
local name = redis.call('HGET', came, 'u')
if name then
  touch(came)
  return { 'undone', name, redis.call('HGET', came, 'a') }
end
local hash = scan(cart)
if (get(hash, 'i') or '0') .. '.' .. (get(hash, 'v') or '0.0') ~= ARGV[2] then return { 'changed' } end

for n = 6, #ARGV, 2 do
  local member, value = ARGV[n], ARGV[n + 1]
  if value == '' then
    drop(hash, hash.at[member])
  elseif string.find(member, '^%d[^:]*$') then
    put(hash, member, value .. string.match(get(hash, member), ' .*'))
  else
    put(hash, member, value)
  end
end
if #ARGV > 5 then
  advance(hash, ARGV[5])
  settle(cart, hash, ARGV[1], clock())
end
redis.call('HSET', came, 'u', ARGV[3], 'a', ARGV[4])
return { 'undone', ARGV[3], ARGV[4], #ARGV > 5 and announce(cart, hash) or nil }
