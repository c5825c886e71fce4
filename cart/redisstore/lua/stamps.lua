-- Stamps identify the published client's own retry of a change. A retry repeats method,
-- path, body and X-Timestamp, 1 s or more after the first try. A second click carries
-- another X-Timestamp, or comes within that second.
--
--   r1 … r4     the stamps, five in each member, which are filled in turn, r1 again after
--               r4: the stamp, 6 characters, and when its change was applied, in ms, 6
--               bytes. The newest 16 count.
--   e<stamp>    the line that the change has changed, if its request does not name it
--
-- They are members of the cart itself, so that a change without an idempotency key uses
-- only one Redis key, and so that they move with the cart when it is merged. They are packed,
-- since every read carries them, and in several members, since a hash with a value of more
-- than 64 bytes takes three times the memory, and a change should write only one of them. A
-- change without a stamp does not touch them.

local STAMPS = 16        -- of a cart, the newest; each counts for STAMP_LIFE
local STAMP, ENTRY, MEMBER = 6, 12, 60  -- bytes
local MEMBERS = { 'r1', 'r2', 'r3', 'r4' }

local function entry(stamp, ms)
  local f = ms % 256
  ms = (ms - f) / 256
  local e = ms % 256
  ms = (ms - e) / 256
  local d = ms % 256
  ms = (ms - d) / 256
  local c = ms % 256
  ms = (ms - c) / 256
  local b = ms % 256
  return stamp .. string.char((ms - b) / 256, b, c, d, e, f)
end

-- last_written returns the place of the member that was written last; 0 for none. That is the one
-- which is not full, or else the one with the latest time, of which r1 follows r4.
local function last_written(hash)
  local at, flat = hash.at, hash.flat
  for n = 1, #MEMBERS do
    local i = at[MEMBERS[n]]
    if i and #flat[i + 1] < MEMBER then return n end
  end
  local last, latest, first = 0, '', ''
  for n = 1, #MEMBERS do
    local i = at[MEMBERS[n]]
    if i then
      local written = string.sub(flat[i + 1], STAMP - ENTRY)
      if written >= latest then last, latest = n, written end
      if n == 1 then first = written end
    end
  end
  if first == latest and last == #MEMBERS then return 1 end
  return last
end

local function ms_of(entries, at)
  local a, b, c, d, e, f = string.byte(entries, at + STAMP, at + ENTRY - 1)
  return ((a * 256 + b) * 256 + c) * 16777216 + (d * 256 + e) * 256 + f
end

-- stamps_of returns the entries that count as one text, the oldest first.
local function stamps_of(hash)
  local last, all = last_written(hash), ''
  for n = last + 1, last + #MEMBERS do
    local at = hash.at[MEMBERS[(n - 1) % #MEMBERS + 1]]
    if at then all = all .. hash.flat[at + 1] end
  end
  return string.sub(all, -STAMPS * ENTRY)
end

-- applied_at returns when a change with a stamp was applied last, and where its entry begins
-- among the entries; nil for none.
local function applied_at(entries, stamp)
  local at, found = 0, nil
  repeat
    at = string.find(entries, stamp, at + 1, true)
    if at and at % ENTRY == 1 then found = at end
  until not at
  if found then return ms_of(entries, found), found end
end

-- put_line remembers the line that a change has changed; nil for none.
local function put_line(hash, stamp, line)
  if line then put(hash, 'e' .. stamp, line) else drop(hash, hash.at['e' .. stamp]) end
end

-- drop_lines removes the lines of stamps that have no entry any more.
local function drop_lines(hash, entries)
  for at = 1, #entries, ENTRY do
    local stamp = string.sub(entries, at, at + STAMP - 1)
    if hash.at['e' .. stamp] and not applied_at(stamps_of(hash), stamp) then put_line(hash, stamp, nil) end
  end
end
