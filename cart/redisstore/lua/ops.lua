-- Makes a list of operations, in order, in one step.
--
-- ARGV  10 all (all of them or none) or each (those that are not refused)
--       11 … for each operation: its name, the number of its arguments, and these. The name refused
--       is of one that is refused whatever the cart holds, with the code that is its argument; or of an
--       edit that is refused because of its line: then the item, and the line's ID, "" for none, and
--       notice as they were read follow
-- Refusals: those of the operations, of the first at fault; line_changed in both modes. The line of
--       the reply is then the place of the operation, from 0.
-- The line that an applied list has changed is one word with all outcomes: for each, after a comma,
--       the line, "-" for none, or "!<code>.<number>" of a refusal

local OPERATIONS = {
  add = add, set = set, edit = edit, remove = remove, clear = clear, coupon = coupon, metadata = metadata, agent = agent,
  refused = function(hash, i)
    local code, item = ARGV[i], ARGV[i + 1]
    if ARGV[i - 1] == '1' then return code end
    local line = index(hash, item) and item or ''
    local as_read = line == ARGV[i + 2] and (get(hash, item .. ':n') or '') == ARGV[i + 3]
    return as_read and code or 'line_changed'
  end,
}

for n = 1, #hash.flat, 2 do hash.at[hash.flat[n]] = n end
survey(hash)
hash.all, hash.in_list, known = true, true, {}
local outcomes, altered, i = {}, false, 11
while ARGV[i] do
  local code, number, line = OPERATIONS[ARGV[i]](hash, i + 2, altered)
  if code and (ARGV[10] == 'all' or code == 'line_changed') then
    hash.flat = redis.call('HGETALL', cart) -- without what the operations before have put
    return reply(code, number, tostring(#outcomes))
  end
  if code then line = '!' .. code .. '.' .. (number or 0) else altered = altered or number end
  outcomes[#outcomes + 1] = line or '-'
  i = i + 2 + ARGV[i + 1]
end

-- Each member is written once, with its last value, and metadata as it is stored.
local at, flat, written, seen = hash.at, hash.flat, {}, {}
for i = 1, #hash.written, 2 do
  local member = hash.written[i]
  local n = at[member]
  if n and not seen[member] then
    local value = flat[n + 1]
    if string.find(member, '^d$') or string.find(member, ':m$') then
      value = string.gsub(value, '^(%d+ )@%d+$', function(bytes) return bytes .. cjson.encode(known[value]) end)
      flat[n + 1] = value
    end
    seen[member] = true
    written[#written + 1] = member
    written[#written + 1] = value
  end
end
hash.written = written
return accept(altered, ',' .. table.concat(outcomes, ','))
