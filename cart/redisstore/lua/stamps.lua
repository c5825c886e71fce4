-- Stamps identify the published client's own retry of a change. A retry repeats method,
-- path, body and X-Timestamp, 1 s or more after the first try. A second click carries
-- another X-Timestamp, or comes within that second.
--
--   r1 … r6     the newest stamps, the oldest first, three in each member: the stamp, 8
--               characters, and when its change was applied, in ms, 11 hexadecimal digits
--   e<stamp>    the line that the change has changed, if its request does not name it
--
-- They are members of the cart itself, so that a change without an idempotency key uses
-- only one Redis key, and so that they move with the cart when it is merged. They are packed,
-- since every read carries them, and in several members, since a hash with a value of more
-- than 64 bytes takes three times the memory. Only changes that have a stamp touch them.

local STAMPS = 16        -- of a cart, the newest; each counts for STAMP_LIFE
local STAMP_FROM = 1000  -- age in ms from which a repeat is a retry
local STAMP, ENTRY, MEMBER = 8, 19, 57  -- bytes

-- is_retry takes the time in ms at which a change with the same stamp was applied; nil
-- for none.
local function is_retry(ms, now)
  local age = ms and now - ms
  return age and age >= STAMP_FROM and age <= STAMP_LIFE
end

-- stamps_of returns all entries of a cart as one text.
local function stamps_of(hash)
  local all, n = get(hash, 'r1') or '', 2
  while #all == (n - 1) * MEMBER do
    all, n = all .. (get(hash, 'r' .. n) or ''), n + 1
  end
  return all
end

local function ms_of(stamps, at)
  return tonumber(string.sub(stamps, at + STAMP, at + ENTRY - 1), 16)
end

-- applied_at returns when a change with a stamp was applied, and where its entry begins; nil
-- for none.
local function applied_at(stamps, stamp)
  local at = 0
  repeat at = string.find(stamps, stamp, at + 1, true) until not at or at % ENTRY == 1
  if at then return ms_of(stamps, at), at end
end

-- with_stamp adds the stamp of a change to the entries, and the line that the change has
-- changed, nil for none. Of two clicks within a second the first counts: a retry of either
-- comes a second or more after it.
local function with_stamp(hash, stamps, stamp, ms, now, line)
  local before, at = applied_at(stamps, stamp)
  if before then
    if now - before <= STAMP_LIFE and ms >= before then return stamps end
    stamps = string.sub(stamps, 1, at - 1) .. string.sub(stamps, at + ENTRY)
  end
  local after = #stamps
  while after > 0 and ms_of(stamps, after - ENTRY + 1) > ms do after = after - ENTRY end
  if line then put(hash, 'e' .. stamp, line) else drop(hash, hash.at['e' .. stamp]) end
  return string.sub(stamps, 1, after) .. stamp .. string.format('%011x', ms) .. string.sub(stamps, after + 1)
end

-- keep_stamps puts the entries into the cart, except those that are too old, or too many.
local function keep_stamps(hash, stamps, now)
  local first = 1
  while first < #stamps and (#stamps - first >= STAMPS * ENTRY or now - ms_of(stamps, first) > STAMP_LIFE) do
    drop(hash, hash.at['e' .. string.sub(stamps, first, first + STAMP - 1)])
    first = first + ENTRY
  end
  local n = 1
  repeat
    local member, part = 'r' .. n, string.sub(stamps, first, first + MEMBER - 1)
    if part == '' then
      drop(hash, hash.at[member])
    elseif part ~= get(hash, member) then
      put(hash, member, part)
    end
    first, n = first + MEMBER, n + 1
  until part == '' and not hash.at['r' .. n]
end
