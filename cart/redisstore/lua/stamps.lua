-- Stamps identify the published client's own retry of a change. A retry repeats method,
-- path, body and X-Timestamp, 1 s or more after the first try. A second click carries
-- another X-Timestamp, or comes within that second.
--
--   r<digest>   ms when the change was applied
--   e<digest>   the line that it has changed, if its request does not name it
--
-- They are members of the cart itself, so that a change without an idempotency key uses
-- only one Redis key, and so that they move with the cart when it is merged.

local STAMPS = 16        -- of a cart, the newest; each counts for STAMP_LIFE
local STAMP_FROM = 1000  -- age in ms from which a repeat is a retry

-- is_retry takes the time in ms at which a change with the same stamp was applied; nil
-- for none.
local function is_retry(ms, now)
  local age = ms and now - tonumber(ms)
  return age and age >= STAMP_FROM and age <= STAMP_LIFE
end

-- stamp_at remembers a change by its stamp, and the line that it has changed, nil for
-- none. Of two clicks within a second the first counts: a retry of either comes a second
-- or more after it.
local function stamp_at(hash, stamp, ms, now, line)
  local before = tonumber(get(hash, 'r' .. stamp))
  if before and now - before <= STAMP_LIFE and ms >= before then return end
  local n = put(hash, 'r' .. stamp, string.format('%d', ms))
  if not before then hash.stamps[#hash.stamps + 1] = n end
  if line then put(hash, 'e' .. stamp, line) else drop(hash, hash.at['e' .. stamp]) end
end

-- age_limit is for dropping the excess oldest of some times: all before the bound go, and
-- as many at the bound itself. One too many is the usual case, and needs no sorting.
-- keys.lua uses it too.
local function age_limit(times, excess)
  if excess == 1 then return math.min(unpack(times)), 1 end
  table.sort(times)
  local bound, at_bound = times[excess], 0
  for i = 1, excess do
    if times[i] == bound then at_bound = at_bound + 1 end
  end
  return bound, at_bound
end

-- sweep drops stamps that are too old, or too many, with their lines.
local function sweep(hash, now)
  local stamps, flat = hash.stamps, hash.flat
  local bound, at_bound = 0, 0
  if #stamps > STAMPS then
    local times = {}
    for i, n in ipairs(stamps) do times[i] = tonumber(flat[n + 1]) end
    bound, at_bound = age_limit(times, #stamps - STAMPS)
  end
  for _, n in ipairs(stamps) do
    local ms = tonumber(flat[n + 1])
    local last = ms == bound and at_bound > 0
    if last then at_bound = at_bound - 1 end
    if last or ms < bound or now - ms > STAMP_LIFE then
      drop(hash, hash.at['e' .. string.sub(flat[n], 2)])
      drop(hash, n)
    end
  end
end
