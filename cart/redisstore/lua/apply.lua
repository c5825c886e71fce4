-- Merge, in the customer's slot: takes the guest's lines in, and in the
-- same step notes how many of each were offered, so that to repeat this adds
-- nothing, whoever repeats it and whenever.
--
-- KEYS  1 customer's cart  2 quantities offered by this guest's cart
--       3 customer's idempotency keys
-- ARGV  1 cart TTL in ms  2 TTL of the quantities in ms  3 cart id, should the cart
--       begin here  4 strategy: sum, max, guest or customer  5 the guest's coupon, or ""
--       6 the guest's cart id, cut as notes have it  7 by how many ms this clock is
--       ahead of that of the guest's Redis
--       8 number of lines, then for each: line, quantity offered, unit price when
--       added, fields as stored or "", notice or "", stock (-1 where it does not
--       bound the line), most of a line
--       then number of stamps and for each: member, ms; then keys: digest, value, …
-- Reply {lines taken in now, {line, requested, kept, …} for those that were cut,
--       1 when the coupon came in}

local cart, offers, keys = KEYS[1], KEYS[2], KEYS[3]
local hash = read(cart)
local strategy, coupon, n = ARGV[4], ARGV[5], tonumber(ARGV[8])
local now = clock()
local shift = tonumber(ARGV[7])
local order = tally(hash, '').order

-- of_product has the quantity of each product in the customer's cart.
local of_product = {}
for member, value in pairs(hash) do
  if is_line(member) then
    local product = product_of(member)
    of_product[product] = (of_product[product] or 0) + (parse(value))
  end
end

-- wanted is the quantity that a strategy gives; nil when the line is done already.
-- sum takes only what was offered beyond the last time, the others a line once.
local function wanted(held, offered, noted)
  if strategy == 'sum' then
    if offered > noted then return (held or 0) + offered - noted end
  elseif noted == 0 then
    if not held or strategy == 'guest' then return offered end
    if strategy == 'max' then return math.max(held, offered) end
    return held
  end
end

-- cut bounds a quantity by stock and the most of a line, but never below what the
-- customer had, and never to nothing.
local function cut(line, want, held, stock, most)
  local kept = math.min(want, most)
  if stock > 0 then
    kept = math.min(kept, stock - (of_product[product_of(line)] or 0) + (held or 0))
  end
  return math.max(kept, math.min(want, held or 0), 1)
end

-- take writes one line and returns what was asked and kept of it.
local function take(line, want, price, fields, notice, stock, most)
  local held, at, added = parse(hash[line])
  local kept = cut(line, want, held, stock, most)
  if not at then
    order = order + 1
    at, added = order, price
  end
  put(cart, hash, line, string.format('%d %d %s', kept, at, added))
  local product = product_of(line)
  of_product[product] = (of_product[product] or 0) + kept - (held or 0)
  if fields ~= '' and not hash[line .. ':f'] then put(cart, hash, line .. ':f', fields) end
  if notice ~= '' and not hash[line .. ':n'] then put(cart, hash, line .. ':n', notice) end
  return kept
end

local taken, adjusted = 0, {}
for i = 0, n - 1 do
  local line, offered, price, fields, notice, stock, most = unpack(ARGV, 9 + i * 7, 15 + i * 7)
  offered = tonumber(offered)
  local noted = tonumber(redis.call('HGET', offers, line) or 0)
  local want = wanted(parse(hash[line]), offered, noted)
  if want then
    local kept = take(line, want, price, fields, notice, tonumber(stock), tonumber(most))
    taken = taken + 1
    if kept ~= want then
      adjusted[#adjusted + 1] = line
      adjusted[#adjusted + 1] = want
      adjusted[#adjusted + 1] = kept
    end
    redis.call('HSET', offers, line, offered)
  end
end

-- A coupon comes in once, too: the customer may have taken it away since.
local redeemed = coupon ~= '' and redis.call('HSETNX', offers, 'c', coupon) == 1 and not hash.c
if redeemed then put(cart, hash, 'c', coupon) end
redis.call('PEXPIRE', offers, ARGV[2])

-- What was reserved for these lines is held now.
for member, note in pairs(hash) do
  local head, id = string.match(note, '^(%S+ %d+) %d+ %d+ (%S+)$')
  if id == ARGV[6] and string.find(member, '^m') then put(cart, hash, member, head .. ' 0 0 ' .. id) end
end

-- The newest of both carts' stamps and keys.
local at = 9 + n * 7
local stamps = tonumber(ARGV[at])
for i = at + 1, at + 2 * stamps, 2 do
  local ms = math.min(tonumber(ARGV[i + 1]) + shift, now)
  if now - ms <= STAMP_LIFE then stamp_at(cart, hash, ARGV[i], ms, now) end
end
if stamps > 0 then sweep(cart, hash, now) end
local new = {}
for i = at + 1 + 2 * stamps, #ARGV, 2 do
  local ms, fingerprint = string.match(ARGV[i + 1], '^(%d+) (%S+)$')
  ms = math.min(tonumber(ms) + shift, now)
  local own = tonumber(string.match(redis.call('HGET', keys, ARGV[i]) or '', '^%d+') or 0)
  if ms > own and now - ms < KEY_LIFE then
    new[#new + 1] = ARGV[i]
    new[#new + 1] = string.format('%d %s', ms, fingerprint)
  end
end
remember(keys, new)

if taken > 0 or redeemed then
  put(cart, hash, 'i', hash.i or ARGV[3])
  put(cart, hash, 'v', string.format('%d', tonumber(hash.v or 0) + 1))
end
settle(cart, hash, ARGV[1])
return { taken, adjusted, redeemed and 1 or 0 }
