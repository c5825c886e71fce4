-- A change with an idempotency key; see change.lua.

local hide_stamps

local function find_repeat(_, now)
  local keys, key = KEYS[2], ARGV[4]
  local held = redis.call('HGET', keys, key)
  local ms, fingerprint = string.match(held or '', '^(%d+) (%S+)$')
  if not ms or now - ms >= KEY_LIFE then return end
  if fingerprint ~= ARGV[5] then return 'idempotency_conflict' end
  local its_ms, line = string.match(redis.call('HGET', keys, key .. ':l') or '', '^(%d+) (%S+)$')
  return 'replayed', its_ms == ms and line or nil, tonumber(ms)
end

local function remember_change(_, now, line)
  local key, at = ARGV[4], string.format('%d ', now)
  if line then return { key, at .. ARGV[5], key .. ':l', at .. line } end
  return { key, at .. ARGV[5] }
end
