-- Reads a cart and renews its TTL. Creates nothing; the remains of an emptied
-- cart keep the time they have.
--
-- KEYS  1 cart
-- ARGV  1 TTL in ms
-- Reply {flat hash, ms left}; an empty list and a negative number when there is no cart

local flat = read(KEYS[1])
if in_use(flat) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return { flat, tonumber(ARGV[1]) }
end
return { flat, redis.call('PTTL', KEYS[1]) }
