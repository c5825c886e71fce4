-- The room that merges under way have reserved in a customer's cart. This file is prepended to
-- reserve, and to add and edit, which must leave that room free. rules/room.go has the same rules.

-- reserved returns the reserved lines and bytes of text, and the number of notes. Notes of the
-- same guest's cart share their room. own is a note that does not count. rooms has the room that
-- is reserved in addition to the notes, by guest's cart id: { lines, text }.
local function reserved(hash, own, rooms)
  local lines, text, notes = 0, 0, 0
  for _, n in ipairs(hash.notes) do
    if hash.flat[n] ~= own then
      notes = notes + 1
      local its_lines, its_text, id = string.match(hash.flat[n + 1], '^%S+ %d+ (%d+) (%d+) (%S+)')
      local r = rooms[id] or { lines = 0, text = 0 }
      r.lines, r.text = math.max(r.lines, tonumber(its_lines)), math.max(r.text, tonumber(its_text))
      rooms[id] = r
    end
  end
  for _, r in pairs(rooms) do
    lines, text = lines + r.lines, text + r.text
  end
  return lines, text, notes
end

-- remaining_room returns the limits of lines and of bytes of text for a change of a cart. The contents
-- of the cart and the reserved room together must not exceed twice the limit.
local function remaining_room(hash, lines, text)
  if #hash.notes == 0 then return lines, text end
  local reserved_lines, reserved_text = reserved(hash, nil, {})
  return math.min(lines, 2 * lines - reserved_lines), math.min(text, 2 * text - reserved_text)
end
