-- What only some scripts need of a cart. survey adds to hash
--   lines    the indexes of all lines, and of those that were dropped since
--   count    the number of lines
--   text     the bytes of text of the cart and of all lines
-- and put and drop keep these right, by follow.

local function survey(hash)
  if hash.lines then return end

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

  -- follow is called before the member of index n gets a value; nil for none.
  function hash:follow(n, member, value)
    local first, held = string.byte(member) or 58, self.flat[n + 1]
    if first == 100 or first <= 57 and string.byte(member, -2) == 58 then -- d
      self.text = self.text + (value and text_in(member, value) or 0) - (held and text_in(member, held) or 0)
    elseif first <= 57 and not value then
      self.count = self.count - 1
    elseif first <= 57 and not held then
      self.lines[#self.lines + 1], self.count = n, self.count + 1
    end
  end
end
