-- Looks a share up in the list of those that a cart has made, or lists it, or notes that it is deleted. Drops those
-- that have expired.
--
-- KEYS  1 the list, a hash: digest of the code -> when the share expires, in seconds; with " -" behind it if it is
--         deleted, so that a late repeat of its request does not share again
-- ARGV  1 "" to look up, or else the value  2 the life of a share in ms  3 … digests, of which the list may have
--         one; the first one is new otherwise
-- Reply {status, n, seconds}: listed or deleted, the place of the digest from 0, and when the share expires; else
--       free or full

local LIVE, DELETED = 10, 50  -- at most; of the deleted, those that expire last
local list, now = KEYS[1], math.floor(clock() / 1000)
local all, held, live, deleted, first = redis.call('HGETALL', list), {}, 0, 0, nil
for n = 1, #all, 2 do
  local seconds, gone = string.match(all[n + 1], '^(%d+)( ?)')
  seconds = tonumber(seconds)
  if seconds <= now then
    redis.call('HDEL', list, all[n])
  else
    held[all[n]] = { gone == '' and 'listed' or 'deleted', seconds }
    if gone == '' then
      live = live + 1
    else
      deleted = deleted + 1
      if not first or seconds < first.seconds then first = { digest = all[n], seconds = seconds } end
    end
  end
end

local status, place, expires = live < LIVE and 'free' or 'full', 0, 0
for n = 3, #ARGV do
  if held[ARGV[n]] then status, place, expires = held[ARGV[n]][1], n - 3, held[ARGV[n]][2] end
end
local deletes = string.find(ARGV[1], ' ', 1, true)
if ARGV[1] ~= '' and (status == 'free' or status == 'listed' and deletes) then
  if deletes and deleted >= DELETED then redis.call('HDEL', list, first.digest) end
  redis.call('HSET', list, ARGV[3 + place], ARGV[1])
  redis.call('PEXPIRE', list, ARGV[2])
end
return { status, place, expires }
