-- Commits a decision about a cart, or another hash with a fence, if everything that it was made from is still as it was read.
-- The store writes only by it, except that it deletes whole keys: shares, carts of failed undos, erased data. All keys are in one slot. Afterwards, all of the writes are made or none,
-- except that Redis may refuse a later one for which its user lacks the right. The service draws the mark in member n for
-- each decision and writes it with every change of a cart, so a copy of this command that runs later finds another one.
--
-- KEYS  1 the hash with the fence, a cart mostly  2 … other hashes of its slot that are checked or written
-- ARGV  1 and 2 the first and the last ms by this Redis' clock at which it may run
--       3 the end of the cart's member n as it was read, "" for none
--       4 name of what commits: an instance, or its steps  5 if this commit fails, for how many ms nothing else may commit; 0 for none
--       6 number of checks, for each: number of the key, member, "=" and its value, or "-" for none
--       then for each write: command, number of the key, number of arguments that follow, these. Key 0 is none: an
--       announcement, which comes last, and whose failure is not one of the commit
-- Reply {late, now} outside of these times, {applied, now, error of the announcement},
--       or {changed, now, ms left of another's turn, the cart as HGETALL unless there is one, what each check has found}

local time, cart = redis.call('TIME'), KEYS[1]
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now < tonumber(ARGV[1]) or now > tonumber(ARGV[2]) then return { 'late', now } end

-- Checks touch each key, so that one of a wrong type is refused before any write.
local held = redis.call('HMGET', cart, 'n', 't')
local same, found, i = held[1] == false and ARGV[3] == '', {}, 7
if held[1] and ARGV[3] ~= '' then same = string.sub(held[1], -#ARGV[3]) == ARGV[3] end
for n = 1, tonumber(ARGV[6]) do
  found[n] = redis.call('HGET', KEYS[tonumber(ARGV[i])], ARGV[i + 1])
  if (found[n] and '=' .. found[n] or '-') ~= ARGV[i + 2] then same = false end
  i = i + 3
end

-- Who has failed twice gets a turn, since another one may be closer to Redis and win every race. Turns are
-- short: one of over a second was written by another clock.
local wait = 0
if held[2] then
  local till, whose = string.match(held[2], '^(%d+) (.*)$')
  if whose ~= ARGV[4] and till - now <= 1000 then wait = math.max(till - now, 0) end
end

if not same or wait > 0 then
  redis.call('HDEL', cart, '') -- there is no such member: a server that is no longer a master refuses this
  if wait == 0 and tonumber(ARGV[5]) > 0 and held[1] then
    redis.call('HSET', cart, 't', string.format('%d %s', now + ARGV[5], ARGV[4]))
  end
  return { 'changed', now, wait, wait == 0 and redis.call('HGETALL', cart) or {}, found }
end

if held[2] then redis.call('HDEL', cart, 't') end
local failed
while ARGV[i] do
  local key, n = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if key > 0 then
    redis.call(ARGV[i], KEYS[key], unpack(ARGV, i + 3, i + 2 + n))
  else
    local reply = redis.pcall(ARGV[i], unpack(ARGV, i + 3, i + 2 + n))
    failed = type(reply) == 'table' and reply.err or nil
  end
  i = i + 3 + n
end
return { 'applied', now, failed }
