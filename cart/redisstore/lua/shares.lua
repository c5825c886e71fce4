-- Lists a share among those that a cart has made, or marks it there as deleted. Drops those that have expired.
--
-- KEYS  1 the list, a hash: digest of the code -> when the share expires, in seconds; with " -" behind it if it is
--         deleted, so that a late repeat of its request does not share again
-- ARGV  1 when the share expires, "-" to delete it, or "?" to ask  2 the life of a share in ms  3 digest of the code  4 … of other
--         codes; if one of them is deleted, so is this one
-- Reply: listed or deleted, now or earlier; full; or none, of a share to delete, or of one that is asked for and not deleted

local LIVE, DELETED = 10, 50  -- at most; of the deleted, those that expire last
local list, value, digest, now = KEYS[1], ARGV[1], ARGV[3], math.floor(clock() / 1000)
local all, held, live, deleted, first = redis.call('HGETALL', list), {}, 0, 0, nil
for n = 1, #all, 2 do
  local seconds, gone = string.match(all[n + 1], '^(%d+)( ?)')
  seconds = tonumber(seconds)
  if seconds <= now then
    redis.call('HDEL', list, all[n])
  elseif gone == '' then
    held[all[n]], live = all[n + 1], live + 1
  else
    held[all[n]], deleted = 'deleted', deleted + 1
    if not first or seconds < first.seconds then first = { digest = all[n], seconds = seconds } end
  end
end

for n = 3, #ARGV do
  if held[ARGV[n]] == 'deleted' then return 'deleted' end
end
if value == '?' then return 'none' end
if value == '-' then
  if not held[digest] then return 'none' end
  if deleted >= DELETED then redis.call('HDEL', list, first.digest) end
  redis.call('HSET', list, digest, held[digest] .. ' -')
  return 'deleted'
end
if held[digest] then return 'listed' end
if live >= LIVE then return 'full' end
redis.call('HSET', list, digest, value)
redis.call('PEXPIRE', list, ARGV[2])
return 'listed'
