-- Vectors of records. ARGV from 2 on has places (session, id, seq) and what else a script needs.

-- The vectors of a record by space; from damaged bytes, as many as can be read.
local function unpacked(value)
  local from, spaces = 1, {}
  while from <= #value do
    local first, last, space, size = string.find(value, '^(%Z*)%z(%d+)%z', from)
    if not first then return spaces end
    spaces[space] = string.sub(value, last + 1, last + tonumber(size))
    from = last + tonumber(size) + 1
  end
  return spaces
end

local function packed(spaces)
  local parts = {}
  for space, vector in pairs(spaces) do parts[#parts + 1] = space .. '\0' .. #vector .. '\0' .. vector end
  return table.concat(parts)
end

local function keep(at, id, spaces)
  if next(spaces) == nil then
    redis.call('HDEL', at.vectors, id)
  else
    redis.call('HSET', at.vectors, id, packed(spaces))
  end
end

local function kept(at, id) return unpacked(redis.call('HGET', at.vectors, id) or '') end

-- The keys of a session after expiry, computed once per session.
local opened = {}
local function open(session)
  if not opened[session] then
    opened[session] = keys_of(session)
    expire(opened[session])
  end
  return opened[session]
end

-- The session's keys if the version of a record at ARGV[i] is current.
local function standing(i)
  local at = open(ARGV[i])
  local seq = redis.call('ZSCORE', at.order, ARGV[i + 1])
  return seq and tonumber(seq) == tonumber(ARGV[i + 2]) and at
end
