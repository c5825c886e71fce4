-- Keeps a share: a hash in the layout of a cart, with only the lines, and the id of the cart that made it.
-- It is never renewed. A share that is kept already stays as it is.
--
-- KEYS  1 the share
-- ARGV  1 its life in ms  2 cart id  3 … member, value, … of the lines
-- Reply: when it expires, in seconds

local expires = redis.call('HGET', KEYS[1], 'x')
if not expires then
  expires = string.format('%d', math.floor((clock() + ARGV[1]) / 1000))
  redis.call('HSET', KEYS[1], 'i', ARGV[2], 'l', LAYOUT, 'x', expires, unpack(ARGV, 3))
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return tonumber(expires)
