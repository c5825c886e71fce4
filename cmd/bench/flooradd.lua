-- KEYS[1]: a cart, a hash of lines as JSON. ARGV: the product, its line as JSON if the
-- cart does not have the product yet, the maximum quantity, the cart's TTL in ms.
-- Adds the line's quantity to the cart, and returns the cart as HGETALL does. A quantity
-- above the maximum is an error and changes nothing.
local line = ARGV[2]
local stored = redis.call('HGET', KEYS[1], ARGV[1])
if stored then
  local merged = cjson.decode(stored)
  merged.quantity = merged.quantity + cjson.decode(line).quantity
  if merged.quantity > tonumber(ARGV[3]) then
    return redis.error_reply('BOUND')
  end
  line = cjson.encode(merged)
end
redis.call('HSET', KEYS[1], ARGV[1], line)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return redis.call('HGETALL', KEYS[1])
