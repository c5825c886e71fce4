-- Stores the version that an agent's list made, or found if the list changed nothing. It is the last
-- operation of such a list, and never a call of its own.
--
-- ARGV  i "", or - for a cart that the agent cancels

local function agent(hash, i, altered)
  local version, mark = string.match(get(hash, 'v') or '0.0', '^(%d+)%.(.*)$')
  if altered then version, mark = version + 1, ARGV[9] end
  put(hash, 'a', ARGV[i] == '-' and '-' or string.format('%d.%s', version, mark)) -- a cart that stays unused is not written
  return nil, false
end
