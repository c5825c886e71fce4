-- A change without an idempotency key that its client stamped; see change.lua.

local stamp = ARGV[6]

-- Whether a member has an entry of this stamp, and when a change with it was applied last; nil for
-- never. Of two clicks within a second the first counts: a retry of either comes a second or more
-- after it.
local held, earlier = false, nil

local function find_repeat(hash, now)
  for n = 1, #MEMBERS do
    local at = hash.at[MEMBERS[n]]
    if at and string.find(hash.flat[at + 1], stamp, 1, true) then held = true end
  end
  if not held then return end
  local stamps_of, applied_at = stamps()
  earlier = applied_at(stamps_of(hash), stamp)
  local age = earlier and now - earlier
  if age and age >= STAMP_FROM and age <= STAMP_LIFE then return 'replayed', get(hash, 'e' .. stamp) end
end

local function remember_change(hash, now, line)
  if earlier and now - earlier <= STAMP_LIFE then return end
  local last = last_written(hash)
  local member, part, oldest = MEMBERS[last], get(hash, MEMBERS[last] or ''), ''
  if not part or #part >= MEMBER then
    member, part = MEMBERS[last % #MEMBERS + 1], ''
    oldest = get(hash, member) or ''
  end
  put(hash, member, part .. entry(stamp, now))
  if hash.in_list then line = nil end -- every read carries it: no outcomes of a list
  if not line and not held and oldest == '' then return end
  local _, _, put_line, drop_lines = stamps()
  put_line(hash, stamp, line)
  drop_lines(hash, oldest)
end

local function hide_stamps(hash)
  for n = 1, #MEMBERS do
    local at = hash.at[MEMBERS[n]]
    if at then hash.flat[at], hash.flat[at + 1] = false, false end
  end
end
