-- Lets changes of a cart be announced on the channel <cart>:live, by one who has subscribed to it.
--
-- KEYS  1 cart
-- ARGV  1 for how many seconds  2 the command: spublish, or publish for a Redis without it
-- Reply the tag of the cart as it is now: <id>.<version>.<mark>; nil if there is no cart

local cart = KEYS[1]
local id = redis.call('HGET', cart, 'i')
if not id then return end
local now, life = math.floor(clock() / 1000), tonumber(ARGV[1])
local till, command = string.match(redis.call('HGET', cart, 'w') or '', '^(%d+) (%a+)$')
if command ~= ARGV[2] or tonumber(till) - now < life / 2 then
  local hash = scan(cart)
  put(hash, 'w', string.format('%d %s', now + life, ARGV[2]))
  write(cart, hash)
end
return id .. '.' .. redis.call('HGET', cart, 'v')
