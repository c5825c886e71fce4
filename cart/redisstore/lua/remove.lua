-- Removes a line. A line that does not exist counts as removed.
--
-- ARGV  10 item

local line = find_line(hash, item)
if line then drop_line(hash, line) end
return accept(line ~= nil)
