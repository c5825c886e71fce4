-- Removes all that a shopper put in: the lines and the coupon. Id and version stay,
-- and the stamps; so do the notes on merges under way, whose lines would be lost
-- without.

local stopped = judge()
if stopped then return stopped end

local members = {}
for member in pairs(hash) do
  if string.find(member, '^[%dc]') then members[#members + 1] = member end
end
for _, member in ipairs(members) do del(cart, hash, member) end
return accept(#members > 0)
