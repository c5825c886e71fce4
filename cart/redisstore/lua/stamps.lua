-- Stamps: by them the published client's own retry of a change is known. It repeats
-- method, path, body and X-Timestamp, 1 s or more after the first try. A second click
-- carries another X-Timestamp, or comes within that second.
--
-- They are members of the cart itself, so that a change without a key names no other
-- Redis key, and so that they move with the cart when it is merged.

local STAMPS = 16        -- of a cart, the newest; each counts for STAMP_LIFE
local STAMP_FROM = 1000  -- age in ms from which a repeat is a retry

local function is_stamp(member)
  return string.find(member, '^r.') ~= nil
end

local function is_retry(hash, stamp, now)
  local at = tonumber(hash['r' .. stamp])
  return at ~= nil and now - at >= STAMP_FROM and now - at <= STAMP_LIFE
end

-- stamp_at remembers a change by its stamp. Of two clicks within a second the first
-- counts: a retry of either comes a second or more after it.
local function stamp_at(key, hash, member, ms, now)
  local at = tonumber(hash[member])
  if not at or now - at > STAMP_LIFE or ms < at then put(key, hash, member, string.format('%d', ms)) end
end

-- sweep drops stamps that are too old, or too many.
local function sweep(key, hash, now)
  local stamps = {}
  for member, at in pairs(hash) do
    if is_stamp(member) then stamps[#stamps + 1] = member end
  end
  table.sort(stamps, function(a, b) return tonumber(hash[a]) > tonumber(hash[b]) end)
  for i, member in ipairs(stamps) do
    if i > STAMPS or now - tonumber(hash[member]) > STAMP_LIFE then del(key, hash, member) end
  end
end
