-- The layout of a cart, and what every script shares. Prepended to each of them.
--
-- A cart is one hash:
--   42.p41           "<quantity> <order> <unit price when added>"   one member a line
--   42.p41:f         "<bytes of text> <fields as JSON>"             only lines with fields
--   42.p41:n         the notice                                     only lines with a notice
--   i  v             cart id and version
--   c                the coupon's code
--   l                the number of this layout; missing in layout 1
--   r<digest>        ms at which a change with this stamp was applied (see stamps.lua)
--   m<random>        a request is merging a guest's cart into this one:
--                    "<guest's digest> <seconds> <lines> <bytes of text> <guest's cart id, cut>"
--   o                in a claimed guest cart: "<new owner's tag> <member of the note>"
-- Lines begin with a digit, the cart's own members with a letter.
--
-- All times are by the clock of the Redis that runs the script: the clocks of the
-- service's instances differ.

local LAYOUT = '2'
local DAY = 86400000         -- ms, as all durations
local STAMP_LIFE = 300000    -- see stamps.lua

-- clock is now in ms.
local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- put and del change a member in Redis and in the table read from it alike.
local function put(key, hash, member, value)
  redis.call('HSET', key, member, value)
  hash[member] = value
end

local function del(key, hash, member)
  if hash[member] then
    redis.call('HDEL', key, member)
    hash[member] = nil
  end
end

-- flatten turns the table back into the list that HGETALL would give.
local function flatten(hash)
  local flat = {}
  for member, value in pairs(hash) do
    flat[#flat + 1] = member
    flat[#flat + 1] = value
  end
  return flat
end

-- upgrade rewrites what layout 1 kept in another way: one stamp in r, all notes in m.
local function upgrade(key, hash)
  local stamp, at = string.match(hash.r or '', '^(%S+) (%d+)$')
  if stamp then put(key, hash, 'r' .. stamp, at) end
  local notes = 0
  for guest, ms in string.gmatch(hash.m or '', ':g:(%S+) (%d+)') do
    notes = notes + 1
    put(key, hash, 'm' .. notes, string.format('%s %d 0 0 -', guest, math.floor(tonumber(ms) / 1000)))
  end
  del(key, hash, 'r')
  del(key, hash, 'm')
  put(key, hash, 'l', LAYOUT)
end

-- read returns the hash as a table, and as the flat list that goes back to the caller.
-- A layout of a later release is an error: nothing in it may be taken for something else.
local function read(key)
  local flat = redis.call('HGETALL', key)
  local hash = {}
  for i = 1, #flat, 2 do hash[flat[i]] = flat[i + 1] end
  if #flat > 0 and hash.l ~= LAYOUT then
    if hash.l then error('LAYOUT ' .. hash.l .. ' of a cart, this release knows ' .. LAYOUT) end
    upgrade(key, hash)
    flat = flatten(hash)
  end
  return hash, flat
end

local function is_line(member)
  return string.find(member, '^%d[^:]*$') ~= nil
end

local function product_of(line)
  return string.match(line, '^%d+')
end

-- quantity, order, price of a line; nothing when there is no such line.
local function parse(value)
  if not value then return end
  local quantity, order, price = string.match(value, '^(%d+) (%d+) (%-?%d+)$')
  return tonumber(quantity), tonumber(order), price
end

-- bytes of a line's text: its fields and its notice.
local function text_of(hash, line)
  local fields = hash[line .. ':f']
  return (fields and tonumber(string.match(fields, '^%d+')) or 0) + string.len(hash[line .. ':n'] or '')
end

-- tally counts the lines, the quantity of one product, all text, and the last order.
local function tally(hash, product)
  local t = { lines = 0, product = 0, text = 0, order = 0 }
  for member, value in pairs(hash) do
    if is_line(member) then
      local quantity, order = parse(value)
      t.lines = t.lines + 1
      t.text = t.text + text_of(hash, member)
      if order > t.order then t.order = order end
      if product_of(member) == product then t.product = t.product + quantity end
    end
  end
  return t
end

-- in_use is false of what remains of an emptied cart: it has neither lines, nor a
-- coupon, nor a note of a merge.
local function in_use(hash)
  for member in pairs(hash) do
    if string.find(member, '^[%dcm]') then return true end
  end
  return false
end

-- settle ends every write: no path leaves a cart without a TTL, or a key that holds
-- nothing. An emptied cart keeps for a day what a stale If-Match or a retry is judged
-- by. Where there was never a cart, the key may hold stamps alone: it lives as long as
-- they count.
local function settle(key, hash, ttl)
  local life = in_use(hash) and ttl or hash.i and DAY or STAMP_LIFE
  for member in pairs(hash) do
    if member ~= 'l' then
      if not hash.l then put(key, hash, 'l', LAYOUT) end
      redis.call('PEXPIRE', key, life)
      return
    end
  end
  redis.call('DEL', key)
end
