-- Merge, in the owner's slot: adds the guest's lines, and in the same step stores how
-- many of each were offered. Any repeat of this adds nothing.
--
-- KEYS  1 owner's cart  2 quantities offered by this guest's cart: line -> quantity,
--       c -> coupon, d -> 1 if it had metadata, and n -> the note of the hand-over that
--       brought it, if one did  3 owner's idempotency keys  4 what this merge has brought, for its
--       undo, if it can be undone:
--         l          the number of this layout
--         42.p41     "<quantity before> <quantity after> <unit price when the guest added it>"
--         42.p41:n, 42.p41:m, c, d: what the merge has filled, as in a cart
--         u, a       once it is undone: the name and the adjusted lines of that (see undo.lua)
-- ARGV  1 cart TTL in ms  2 TTL of the quantities in ms  3 cart id, used when the
--       cart begins here  4 strategy: sum, max, guest or customer  5 the guest's coupon, or ""
--       6 the guest's cart id, cut as notes have it  7 by how many ms this clock is
--       ahead of that of the guest's Redis  8 mark of the version that this merge makes
--       9 name of the merge in its report: its note without the m  10 the guest's metadata as stored, or ""
--       11 guest's digest  12 lines that were removed from the guest's cart, as in member b, or ""
--       13 number of lines, then for each: line, quantity offered, unit price when
--       added, fields as stored or "", notice or "", stock (-1 where it does not
--       bound the line), maximum of all lines of the product (0 for none), minimum and
--       maximum quantity of a line, step (0 and 1 for any), metadata as stored or ""
--       then number of stamps and for each: stamp, ms, line or ""; then keys: digest,
--       value, …
-- Reply: {report, failed}: the report of what was merged now, as cart.lua has it, "" when nothing was; and
--       the error of announce, if there was one

local cart, offers, keys = KEYS[1], KEYS[2], KEYS[3]
local strategy, coupon, n_lines = ARGV[4], ARGV[5], tonumber(ARGV[13])
local now = clock()
local shift = tonumber(ARGV[7])
local hash = scan(cart)
survey(hash)

-- in_cart has the quantity of each product in the customer's cart.
local in_cart, last_order = {}, 0
for _, n in ipairs(hash.lines) do
  local quantity, order = parse(hash.flat[n + 1])
  local product = string.match(hash.flat[n], '^%d+')
  in_cart[product] = (in_cart[product] or 0) + quantity
  last_order = math.max(last_order, tonumber(order))
end

local noted = {}
local offered_before = redis.call('HGETALL', offers)
for n = 1, #offered_before, 2 do noted[offered_before[n]] = offered_before[n + 1] end

-- wanted returns the quantity that a strategy gives; nil when the line was merged before.
-- sum adds only what is offered beyond the last time; the others merge a line once.
local function wanted(held, offered, before)
  if strategy == 'sum' then
    if offered > before then return (held or 0) + offered - before end
  elseif before == 0 then
    if not held or strategy == 'guest' then return offered end
    if strategy == 'max' then return math.max(held, offered) end
    return held
  end
end

-- cut limits a quantity by the maximums and by stock, and then lowers it to a step. The
-- result is at least 1, and never below what the customer had. others is what other lines of
-- the product hold. It also returns the code of the bound that cut the quantity, if one did.
local function cut(want, held, others, stock, per_cart, minimum, maximum, step)
  local most, code = maximum, 'above_max_quantity'
  if per_cart > 0 then most = math.min(most, per_cart - others) end
  if stock > 0 and stock - others < most then most, code = stock - others, 'insufficient_stock' end
  local kept = want
  if kept > most then kept = most else code = 'off_step' end
  if step > 1 and kept > minimum then kept = kept - (kept - minimum) % step end
  return math.max(kept, math.min(want, held), 1), code
end

local brought = { 'l', '1' } -- for KEYS 4

local function bring(member, value)
  brought[#brought + 1] = member
  brought[#brought + 1] = value
end

-- fill_metadata adds those of the guest's names that a member of the customer's has room for and
-- does not have, in their order. It reports whether it added any.
local function fill_metadata(hash, member, guests)
  if guests == '' then return false end
  local own, others, names, filled = decode(get(hash, member) or ''), decode(guests), {}, {}
  local _, n = encode(own)
  for name in pairs(others) do
    if not own[name] then names[#names + 1] = name end
  end
  table.sort(names)
  for i = 1, math.min(#names, 2 * MAX_NAMES - n) do
    own[names[i]], filled[names[i]] = others[names[i]], others[names[i]]
  end
  if not next(filled) then return false end
  put(hash, member, (encode(own)))
  bring(member, (encode(filled)))
  return true
end

local WIDTH = 11      -- arguments of a line
local ADJUSTED = 100  -- lines in a report
local UNDO_LIFE = 900000
local taken, adjusted, now_noted = 0, {}, {}
for i = 14, 13 + n_lines * WIDTH, WIDTH do
  local line, offered, price, fields, notice = unpack(ARGV, i, i + 4)
  local held, order, added = parse(get(hash, line))
  local want = wanted(held, tonumber(offered), tonumber(noted[line] or 0))
  if want then
    local product = string.match(line, '^%d+')
    local kept, code = cut(want, held or 0, (in_cart[product] or 0) - (held or 0),
      tonumber(ARGV[i + 5]), tonumber(ARGV[i + 6]), tonumber(ARGV[i + 7]), tonumber(ARGV[i + 8]), tonumber(ARGV[i + 9]))
    in_cart[product] = (in_cart[product] or 0) + kept - (held or 0)
    if not held then
      last_order = last_order + 1
      order, added = last_order, price
    end
    put(hash, line, kept .. ' ' .. order .. ' ' .. added)
    if fields ~= '' and not get(hash, line .. ':f') then put(hash, line .. ':f', fields) end
    local noticed = notice ~= '' and not get(hash, line .. ':n')
    if noticed then
      put(hash, line .. ':n', notice)
      bring(line .. ':n', notice)
    end
    local filled = fill_metadata(hash, line .. ':m', ARGV[i + 10])
    if noticed or filled or kept > (held or 0) then
      bring(line, (held or 0) .. ' ' .. kept .. ' ' .. price)
    end
    taken = taken + 1
    now_noted[#now_noted + 1] = line
    now_noted[#now_noted + 1] = offered
    if kept ~= want and #adjusted < ADJUSTED then
      adjusted[#adjusted + 1] = string.format(' %s %d %d %s', line, want, kept, code)
    end
  end
end

-- A coupon is merged only once, too: the customer may have removed it since.
local offers_coupon = coupon ~= '' and not noted.c
local redeemed = offers_coupon and not hash.at.c
if redeemed then
  put(hash, 'c', coupon)
  bring('c', coupon)
end

-- So is the cart's metadata.
local offers_metadata = ARGV[10] ~= '' and not noted.d
local filled = offers_metadata and fill_metadata(hash, 'd', ARGV[10])

-- These lines no longer need their reservation, nor does anyone need to wait for them. A note that another try has
-- deleted is written again: until the lines are confirmed, it keeps a guest's cart from being claimed with them.
local own, is_noted = 'm' .. ARGV[9], false
for _, n in ipairs(hash.notes) do
  local head, id = string.match(hash.flat[n + 1], '^(%S+ %d+) %d+ %d+ (%S+)')
  if id == ARGV[6] then put(hash, hash.flat[n], head .. ' 0 0 ' .. id .. ' applied') end
  is_noted = is_noted or hash.flat[n] == own
end
if not is_noted then put(hash, own, string.format('%s %d 0 0 %s applied', ARGV[11], math.floor(now / 1000), ARGV[6])) end

-- A second click must not remove another line of the product, whichever cart the first one was for.
local removed = get(hash, 'b') or ''
if ARGV[12] ~= '' and not string.find(removed, ARGV[12], 1, true) then
  put(hash, 'b', ARGV[12] .. (removed ~= '' and ' ' .. removed or ''))
end

-- with_stamp adds a stamp of the guest's cart to the entries in the order of time.
local function with_stamp(entries, stamp, ms, line)
  local before, at = applied_at(entries, stamp)
  if before then
    if now - before <= STAMP_LIFE and ms >= before then return entries end
    entries = string.sub(entries, 1, at - 1) .. string.sub(entries, at + ENTRY)
  end
  local after = #entries
  while after > 0 and ms_of(entries, after - ENTRY + 1) > ms do after = after - ENTRY end
  put_line(hash, stamp, line)
  return string.sub(entries, 1, after) .. entry(stamp, ms) .. string.sub(entries, after + 1)
end

-- The newest of both carts' stamps and keys.
local first = 14 + n_lines * WIDTH
local n_stamps, stamps = tonumber(ARGV[first]), stamps_of(hash)
local before = ''
for _, member in ipairs(MEMBERS) do before = before .. (get(hash, member) or '') end
for i = first + 1, first + 3 * n_stamps, 3 do
  local ms, line = math.min(tonumber(ARGV[i + 1]) + shift, now), ARGV[i + 2]
  if now - ms <= STAMP_LIFE then stamps = with_stamp(stamps, ARGV[i], ms, line ~= '' and line or nil) end
end
if n_stamps > 0 then
  before, stamps = before .. stamps, string.sub(stamps, -STAMPS * ENTRY)
  for n, member in ipairs(MEMBERS) do
    local part = string.sub(stamps, (n - 1) * MEMBER + 1, n * MEMBER)
    if part ~= '' then put(hash, member, part) else drop(hash, hash.at[member]) end
  end
  drop_lines(hash, before)
end
local new_keys, own_keys = {}, {}
if #ARGV > first + 3 * n_stamps then
  local all = redis.call('HGETALL', keys)  -- one call instead of one for each key
  for n = 1, #all, 2 do own_keys[all[n]] = all[n + 1] end
end
for i = first + 1 + 3 * n_stamps, #ARGV, 2 do
  local ms, use = string.match(ARGV[i + 1], '^(%d+) (.*)$')
  ms = math.min(tonumber(ms) + shift, now)
  local own = tonumber(string.match(own_keys[ARGV[i]] or '', '^%d+') or 0)
  if ms > own and now - ms < KEY_LIFE then
    new_keys[#new_keys + 1] = ARGV[i]
    new_keys[#new_keys + 1] = string.format('%d %s', ms, use)
  end
end

local report, handed_over = '', string.byte(ARGV[9]) == 104 -- h
if taken > 0 or redeemed or filled then
  if not hash.at.i then
    put(hash, 'i', ARGV[3])
    if handed_over then put(hash, 'a', '0.0') end -- an agent that the shopper keeps follows to this cart only
  end
  advance(hash, ARGV[8])
  report = string.format('%d %s %d', now, ARGV[9], taken) .. table.concat(adjusted)
  put(hash, 'g', report)
end
if #hash.written > 0 and not hash.at.l then put(hash, 'l', LAYOUT) end

local life, kept = lifetime(hash, ARGV[1], now)
write(cart, hash)
if #now_noted > 0 then redis.call('HSET', offers, unpack(now_noted)) end
if offers_coupon then redis.call('HSETNX', offers, 'c', coupon) end
if offers_metadata then redis.call('HSETNX', offers, 'd', '1') end
if handed_over then redis.call('HSETNX', offers, 'n', 'm' .. ARGV[9]) end
redis.call('PEXPIRE', offers, ARGV[2])
remember(keys, new_keys)
expire(cart, life, kept)
if report ~= '' and KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('HSET', KEYS[4], unpack(brought))
  redis.call('PEXPIRE', KEYS[4], UNDO_LIFE)
end
return { report, report ~= '' and announce(cart, hash) or nil }
