-- Metadata; prepended to add, edit, metadata and apply. cart/metadata.go has the same rules.
-- Refusal: metadata_full (too many names)

local MAX_NAMES = 20

-- In a list, many operations may change the same metadata: it is decoded and encoded once. Until the
-- end, what is put is "<bytes of values> @<number>", and known has the values of each such text, and of
-- each that was decoded. nil outside of lists.
local known, n_known = nil, 0

-- texts returns its functions.
local function texts()
  -- decode returns the names and values of metadata as stored, or "".
  local function decode(metadata)
    if metadata == '' then return {} end
    local held = known and known[metadata]
    if not held then held = cjson.decode(string.match(metadata, '^%d+ (.*)$')) end
    if not known then return held end
    known[metadata] = held
    local values = {}
    for name, value in pairs(held) do values[name] = value end
    return values
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
    if not known then return string.format('%d ', bytes) .. cjson.encode(values), names end
    n_known = n_known + 1
    local text = string.format('%d @%d', bytes, n_known)
    known[text] = values
    return text, names
  end

  -- merge_metadata returns metadata as stored after changes, as stored, in which "" removes a name; or
  -- also the code of a refusal.
  local function merge_metadata(metadata, changes)
    if changes == '' then return metadata end
    local values, altered = decode(metadata), false
    local before = size(values)
    for name, value in pairs(decode(changes)) do
      if value == '' then value = nil end
      if values[name] ~= value then values[name], altered = value, true end
    end
    if not altered then return metadata end
    local merged, names = encode(values)
    return merged, names > before and names > MAX_NAMES and 'metadata_full' or nil
  end

  -- put_metadata sets the member with metadata; "" removes it.
  local function put_metadata(hash, member, metadata)
    if metadata == '' then return drop(hash, index(hash, member)) end
    put(hash, member, metadata)
    if get(hash, 'l') ~= WITH_METADATA then put(hash, 'l', WITH_METADATA) end
  end

  return decode, encode, merge_metadata, put_metadata
end
