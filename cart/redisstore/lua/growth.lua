-- The bounds of another quantity of a line; prepended to set and edit, after bounds.lua.

-- refuse_growth checks a new quantity of a line whose quantity is held, except for the
-- bounds of the line. raise is the code with which any higher quantity is refused, or "".
local function refuse_growth(hash, i, quantity, held, raise)
  if quantity <= held then return end
  if raise ~= '' then return raise end
  return refuse_shared(hash, i, quantity, held)
end

-- refuse_new checks a new quantity of a line whose quantity is held. A lower one may be above the
-- maximum. raise is that of refuse_growth.
local function refuse_new(hash, i, quantity, held, raise)
  if quantity == held then return end
  if quantity > held and raise ~= '' then return raise end
  local code = refuse_line(i, quantity, quantity < held and held or tonumber(ARGV[i + 4]))
  if code or quantity < held then return code end
  return refuse_shared(hash, i, quantity, held)
end
