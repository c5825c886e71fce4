-- Metadata; prepended to apply.

local MAX_NAMES = 20

-- decode returns the names and values of metadata as stored, or "".
local function decode(metadata)
  if metadata == '' then return {} end
  return cjson.decode(string.match(metadata, '^%d+ (.*)$'))
end

-- size returns the number of names, and the bytes of values.
local function size(values)
  local names, bytes = 0, 0
  for _, value in pairs(values) do names, bytes = names + 1, bytes + #value end
  return names, bytes
end

-- encode returns metadata as stored, "" for none, and the number of its names.
local function encode(values)
  local names, bytes = size(values)
  if names == 0 then return '', 0 end
  return string.format('%d ', bytes) .. cjson.encode(values), names
end

