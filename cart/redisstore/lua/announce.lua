-- announce tells those who listen to a cart, if any do (see listen.lua), its new tag, or gone. It is the last command of
-- a script that has changed the cart. It returns its own error, if there was one: the change is still made.
local function announce(key, hash, gone)
  local flat, at = hash.flat, hash.at
  if not at.w then return end
  local channel, payload = key .. ':live', gone or flat[at.i + 1] .. '.' .. flat[at.v + 1]
  local plain = string.byte(flat[at.w + 1], 12) == 112 -- p
  local reply = plain and redis.pcall('PUBLISH', channel, payload) or redis.pcall('SPUBLISH', channel, payload)
  return type(reply) == 'table' and reply.err or nil
end
