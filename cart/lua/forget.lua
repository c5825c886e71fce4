-- Merge, step 5, in the customer's slot: the guest's cart has come in, or there
-- was none.
--
-- KEYS  1 customer's cart
-- ARGV  1 the note as it was read
-- A note that another merge has put there since stays.

if redis.call('HGET', KEYS[1], 'm') == ARGV[1] then redis.call('HDEL', KEYS[1], 'm') end
return 1
