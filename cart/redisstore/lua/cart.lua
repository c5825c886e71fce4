-- The layout of a cart, and functions that scripts share: all but commit.lua, which stands alone.
--
-- A cart is one hash:
--   42.p41           "<quantity> <order> <unit price when added>"   one member a line
--   42.p41:f         "<bytes of text> <fields as JSON>"             only lines with fields
--   42.p41:n         the notice                                     only lines with a notice
--   42.p41:m         "<bytes of values> <metadata as JSON>"         only lines with metadata
--   i                cart id
--   v                "<version>.<mark>": the mark, which each change brings, is random, so that
--                    a version that a failover or a backup takes back is not taken for
--                    the next one of that number
--   c                the coupon's code
--   d                "<bytes of values> <the cart's metadata as JSON>"
--   a                the "<version>.<mark>" that the last change of its agent has made, or - once the
--                    agent has canceled it; 0.0 in a cart that a hand-over has begun
--   x                when the cart expires, in seconds by Redis's clock; HGETALL does
--                    not return the TTL
--   l                the number of the layout
--   n                the fence: the marks of the last decisions, ten at most, that have written the cart, the newest last
--                    (see commit.lua). Every write appends its own
--   t                "<ms> <instance>": until when only that instance may commit (see commit.lua)
--   b                "<line> <seconds> …": lines that were removed beside others of their product, the latest first
--   r1 … r4 e<stamp> changes that a retry would repeat (see stamps.lua)
--   m<name>          a request is merging a guest's cart into this one; mh… is a hand-over:
--                    "<guest's digest> <seconds> <lines> <bytes of text> <guest's cart id, cut>",
--                    and " applied" once its lines are here
--   g                the report of the latest merge, for a minute:
--                    "<ms> <name> <lines>", and for each line that was cut
--                    " <line> <requested> <kept> <code>"
--   u                in a guest's cart that the undo of a merge has begun: the tag of the customer's cart,
--                    whose requests do not merge it again
--   w                until when a change is announced to those who listen, and how:
--                    "<seconds> <command>" (see listen.lua)
--   o                in a claimed guest cart: "<new owner's tag> <member of the note> <random name of the claim>"
--   k                in a claimed guest cart: " <digest>=<ms> … ", of the token's idempotency keys
-- Lines begin with a digit, the cart's own members with a letter.
--
-- A script reads a cart once, into the list that HGETALL gives, and goes through that
-- list once (scan). put and drop change the list, and collect what write then sends in one
-- HDEL and one HSET.
--
-- Every call defines its functions again, at 0.1 µs each. So a script has only the files that it needs.
--
-- All times are by the clock of the Redis that runs the script: the clocks of the
-- service's instances differ.

local LAYOUT = '3'
local DAY = 86400000         -- ms, as all durations
local STAMP_LIFE = 300000    -- see stamps.lua
local REPORT_LIFE = 60000
local RENEWALS = 720         -- a TTL is renewed once this part of it has passed, as read.go has it

-- clock returns the current time in ms.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- scan reads a cart and goes once through it. Another layout is an error: this release would
-- misread its members. The result, called hash below, has
--   flat     member, value, member, value, … as HGETALL gives it; the index of an entry is
--            that of its member
--   at       member -> index
--   notes    the indexes of the notes of merges
--   written  what write is to set: member, value, …
--   gone     what write is to remove: members
local function scan(key)
  local flat, byte = redis.call('HGETALL', key), string.byte
  local at, notes = {}, {}
  for n = 1, #flat, 2 do
    at[flat[n]] = n
    if byte(flat[n]) == 109 then notes[#notes + 1] = n end -- m
  end
  local layout = at.l and flat[at.l + 1] or 'without a number'
  if #flat > 0 and layout ~= LAYOUT then error('LAYOUT ' .. layout .. ' of a cart, this release knows ' .. LAYOUT) end
  return { flat = flat, at = at, notes = notes, written = {}, gone = {} }
end

-- get returns the value of a member; nil if there is none.
local function get(hash, member)
  local n = hash.at[member]
  return n and hash.flat[n + 1]
end

-- parse returns the quantity of a line, and its order and price as text; nothing for nil.
local function parse(line)
  if not line then return end
  local quantity, order, price = string.match(line, '^(%d+) (%d+) (%-?%d+)$')
  return tonumber(quantity), order, price
end

-- put sets a member, in flat now and in Redis with the next write.
local function put(hash, member, value)
  local flat, written = hash.flat, hash.written
  local n = hash.at[member] or #flat + 1
  hash.at[member], flat[n], flat[n + 1] = n, member, value
  written[#written + 1] = member
  written[#written + 1] = value
end

-- drop removes the member of an index, if there is one, in the same way.
local function drop(hash, n)
  if not n then return end
  local flat, gone = hash.flat, hash.gone
  gone[#gone + 1] = flat[n]
  hash.at[flat[n]] = nil
  flat[n], flat[n + 1] = '', ''
end

-- fence puts the mark of a write.
local function fence(key, hash)
  local time = redis.call('TIME')
  local mark = string.sub(redis.sha1hex(time[1] .. '.' .. time[2] .. key .. table.concat(hash.written)), 1, 6)
  put(hash, 'n', string.sub(get(hash, 'n') or '------', -54) .. mark)
end

-- write sends what put and drop have collected, first what was dropped. A guest's cart of 500
-- lines with all texts is within the 7,999 values that unpack allows.
local function write(key, hash)
  if #hash.gone > 0 or #hash.written > 0 then fence(key, hash) end
  if #hash.gone > 0 then
    redis.call('HDEL', key, unpack(hash.gone))
    -- What was put and then dropped must not come back.
    local kept = {}
    for i = 1, #hash.written, 2 do
      if hash.at[hash.written[i]] then
        kept[#kept + 1] = hash.written[i]
        kept[#kept + 1] = hash.written[i + 1]
      end
    end
    hash.gone, hash.written = {}, kept
  end
  if #hash.written > 0 then
    redis.call('HSET', key, unpack(hash.written))
    hash.written = {}
  end
end

-- advance makes the next version of a cart.
local function advance(hash, mark)
  local version = tonumber(string.match(get(hash, 'v') or '0', '^%d+'))
  put(hash, 'v', string.format('%d.%s', version + 1, mark))
end

-- in_use is false for what remains of an emptied cart: it has no lines, no coupon, no metadata,
-- and no note of a merge.
local function in_use(flat)
  for n = 1, #flat, 2 do
    local first = string.byte(flat[n]) or 0
    if first >= 48 and first <= 57 or first == 99 or first == 100 or first == 109 then return true end -- 0 to 9, c, d, m
  end
  return false
end

-- lifetime returns how many ms to keep a cart, and whether Redis keeps it that long already; if not,
-- it puts its expiry into x. It drops the report of a merge, and the mark of listeners, that are over. It returns nil if nothing is
-- left. An emptied cart keeps for a day what is needed to recognize a stale If-Match or a retry. If
-- there was never a cart, the key may hold only stamps: it lives as long as they count.
local function lifetime(hash, ttl, now)
  local report = hash.at.g
  if report and now - tonumber(string.match(hash.flat[report + 1], '^%d+')) > REPORT_LIFE then drop(hash, report) end
  local listened = hash.at.w
  if listened and now > string.sub(hash.flat[listened + 1], 1, 10) * 1000 then drop(hash, listened) end
  local life, expiry = in_use(hash.flat) and tonumber(ttl) or hash.at.i and DAY, hash.at.x
  if life then
    local left = (tonumber(expiry and hash.flat[expiry + 1]) or 0) * 1000 - now
    if left <= life and left > life - life / RENEWALS then return left, true end
    put(hash, 'x', string.format('%d', math.floor((now + life) / 1000)))
    return life
  end
  drop(hash, expiry)
  for member in pairs(hash.at) do
    if member ~= 'l' then return STAMP_LIFE end
  end
end

-- expire ends every write, so that no cart is without a TTL and no key is empty. life and kept are
-- what lifetime has returned.
local function expire(key, life, kept)
  if kept then return end
  if life then redis.call('PEXPIRE', key, life) else redis.call('DEL', key) end
end

-- touch writes a key without changing it. Since Redis 7.2, a wait for replicas covers only what its own connection
-- has written, but a repeat must wait for what the first try has written on another one.
local function touch(key)
  local left = redis.call('PTTL', key)
  if left > 0 then redis.call('PEXPIRE', key, left) end
end

-- settle writes what put and drop have collected, and renews the TTL. It returns the ms
-- left.
local function settle(key, hash, ttl, now)
  local life, kept = lifetime(hash, ttl, now)
  write(key, hash)
  expire(key, life, kept)
  return life
end
