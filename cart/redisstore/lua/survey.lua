-- survey adds to hash what reserve, claim and apply need:
--   lines    the indexes of all lines
--   count    the number of lines
--   text     the bytes of text of the cart and of all lines
local function survey(hash)
  -- text_in returns the bytes of text in a line's :f, :n or :m, or in d.
  local function text_in(member, value)
    if string.byte(member, -1) == 110 then return #value end -- n
    return tonumber(string.match(value, '^%d+')) or 0
  end

  local lines, text, flat, byte = {}, 0, hash.flat, string.byte
  for n = 1, #flat, 2 do
    local member = flat[n]
    if (byte(member) or 58) <= 57 then
      if byte(member, -2) ~= 58 then                         -- no :
        lines[#lines + 1] = n
      else
        text = text + text_in(member, flat[n + 1])
      end
    end
  end
  if hash.at.d then text = text + text_in('d', flat[hash.at.d + 1]) end
  hash.lines, hash.count, hash.text = lines, #lines, text
end
