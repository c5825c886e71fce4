-- announce tells those who listen to a cart, if any do (see listen.lua), what it is now: its tag, or gone. It is
-- the last command of a script that has changed the cart. It returns the error, which is never the change's.
local function announce(key, hash, payload)
  local listened = hash.at.w
  if not listened then return end
  local command = string.match(hash.flat[listened + 1], '%a+$')
  local reply = redis.pcall(command, key .. ':live', payload or hash.flat[hash.at.i + 1] .. '.' .. hash.flat[hash.at.v + 1])
  return type(reply) == 'table' and reply.err or nil
end
