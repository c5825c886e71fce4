-- The room for lines and text, of which merges under way have reserved a part in a customer's cart.
-- This file is prepended to reserve, and to add, edit and metadata, which must leave that part free.
-- rules/room.go has the same rules.
-- Refusals: text_full (of the cart), line_text_full and notice_too_long (of a line)

-- room returns its functions.
local function room()
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

  -- text_size returns the bytes of a line's text. Each part is as stored, or "".
  local function text_size(fields, notice, metadata)
    return tonumber(string.match(fields, '^%d+') or 0) + #notice + tonumber(string.match(metadata, '^%d+') or 0)
  end

  -- refuse_text checks a change of the size of a text. The room that merges have reserved is not free.
  local function refuse_text(hash, before, after, maximum)
    if after <= before then return end
    survey(hash)
    local _, left = remaining_room(hash, 0, tonumber(maximum))
    if hash.text - before + after > left then return 'text_full' end
  end

  -- refuse_line_text checks a change of the size of a line's text, if the line has metadata: without,
  -- the text is judged before the script runs.
  local function refuse_line_text(before, after, maximum, metadata, changes)
    if metadata == '' or after <= before or after <= tonumber(maximum) then return end
    return changes ~= '' and 'line_text_full' or 'notice_too_long'
  end

  return text_size, refuse_text, refuse_line_text, remaining_room, reserved
end
