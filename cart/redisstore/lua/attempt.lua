-- Begins an attempt of an agent's keyed call, or finds the result of an earlier one.
--
-- KEYS  1 the results of calls under one ID, a hash:
--         <digest of the key>   "<ms> <fingerprint> <result>": when the call got this result; or if it has none
--                               yet, until when its attempt may run
--         o                     the digests, in the order in which their calls began
--       2 cart
-- ARGV  1 digest of the key  2 fingerprint  3 ms for which the attempt may run, 0 to only look
--       4 1 if something may be stored where there is nothing yet, else 0
-- Replies: {kept, result}   {conflict} (the key of another request)   {busy} (another attempt runs)
--       {rate_limited} (ARGV 4)   {none} or {used}: it only looked, and there is nothing here, or a cart or other results
--       {begun, until}; first instead of begun if there was nothing here, and again if an attempt has ended
--       without a result, and may have changed the cart

local RESULTS, DIGEST = 256, 16  -- of an ID, the newest; characters
local results, digest = KEYS[1], ARGV[1]
local now, life = clock(), tonumber(ARGV[3])
local held, order = redis.call('HGET', results, digest), redis.call('HGET', results, 'o')
local ms, fingerprint, result = string.match(held or '', '^(%d+) (%S+) (.*)$')
if ms and now - ms < DAY then
  if fingerprint ~= ARGV[2] then return { 'conflict' } end
  if result ~= '' then return { 'kept', result } end
  if now < tonumber(ms) then return { 'busy' } end
else
  ms = nil
end

local used = order or redis.call('EXISTS', KEYS[2]) == 1
if life == 0 then return { used and 'used' or 'none' } end
if not used and ARGV[4] == '0' then return { 'rate_limited' } end
if not held then
  local all = (order or '') .. digest
  if #all > RESULTS * DIGEST then
    redis.call('HDEL', results, string.sub(all, 1, DIGEST))
    all = string.sub(all, DIGEST + 1)
  end
  redis.call('HSET', results, 'o', all)
end
local last = string.format('%d', now + life)
redis.call('HSET', results, digest, last .. ' ' .. ARGV[2] .. ' ')
redis.call('PEXPIRE', results, DAY)
return { ms and 'again' or used and 'begun' or 'first', last }
