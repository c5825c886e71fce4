-- Removes a line. A line that does not exist counts as removed.
--
-- ARGV  i item

local function remove(hash, i)
  local at = find_line(hash, ARGV[i])
  if at then drop_line(hash, at) end
  return nil, at ~= nil
end
