-- Removes a line. A line that is not there is as good as removed.
--
-- ARGV  9 item

local stopped = judge()
if stopped then return stopped end

local line = find(ARGV[9])
if line then drop(line) end
return accept(line ~= nil)
