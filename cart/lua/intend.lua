-- Merge, step 0, in the customer's slot: notes which guest cart is about to come
-- in, before it is claimed, so that whoever comes next can take up a broken merge.
--
-- KEYS  1 customer's cart
-- ARGV  1 guest's tag  2 now in ms
-- Reply the note that stands: this one, or an earlier one that must be driven first

local note = redis.call('HGET', KEYS[1], 'm')
if note and string.match(note, '^%S+') ~= ARGV[1] then return note end
note = ARGV[1] .. ' ' .. ARGV[2]
redis.call('HSET', KEYS[1], 'm', note)
if redis.call('PTTL', KEYS[1]) < DAY then redis.call('PEXPIRE', KEYS[1], DAY) end
return note
