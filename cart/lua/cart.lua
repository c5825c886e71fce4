-- The layout of a cart, and what every script shares. Prepended to each of them.
--
-- A cart is one hash:
--   42.p41           "<quantity> <order> <unit price when added>"   one member a line
--   42.p41:f         "<bytes of text> <fields as JSON>"             only lines with fields
--   42.p41:n         the notice                                     only lines with a notice
--   i  v             cart id and version
--   c                the coupon's code
--   r                "<digest> <ms>" of the change last applied, if its client stamped it
--   m                guest carts being merged into this one: "<tag> <ms>" of each
--   o                in a claimed guest cart: its new owner's tag
-- Lines begin with a digit, the cart's own members with a letter.

local DAY = 86400000

-- read returns the hash as a table and as the flat list that goes back to the caller.
local function read(key)
  local flat = redis.call('HGETALL', key)
  local hash = {}
  for i = 1, #flat, 2 do hash[flat[i]] = flat[i + 1] end
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

-- put and del change a member in Redis and in the table read from it alike.
local function put(key, hash, member, value)
  redis.call('HSET', key, member, value)
  hash[member] = tostring(value)
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

-- in_use is false of what remains of an emptied cart.
local function in_use(hash)
  if hash.c or hash.m then return true end
  for member in pairs(hash) do
    if is_line(member) then return true end
  end
  return false
end

-- settle ends every write: no path leaves a cart without a TTL. An emptied cart
-- keeps only what a stale If-Match or a retry is judged by, for a day.
local function settle(key, hash, ttl)
  redis.call('PEXPIRE', key, in_use(hash) and ttl or DAY)
end
