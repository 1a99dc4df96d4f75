-- What every verb shares. KEYS[1] is the key of the store's counter. ARGV[1] is one JSON document,
-- the request: user (the prefix of all the user's keys), session (or none), now, ttl, where, ...
--
-- A session is five keys, so one EXPIRE each keeps it together, however many records it holds:
--   :records  hash   id -> its kind, a zero byte, and the record as JSON
--   :order    zset   id by seq, which is conversation order
--   :marks    hash   id -> its marks, each between separators
--   :index    zset   "kind\0<kind>\0<id>" and "mark\0<mark>\0<id>", all of score 0, to find by prefix
--   :expiry   zset   id by the time it expires
-- and a user has a set of the sessions it has.

local request = cjson.decode(ARGV[1])
local SEPARATOR = '\31'

local function keys_of(session)
  local base = request.user .. 'session:' .. session .. ':'
  return {
    session = session,
    records = base .. 'records',
    order = base .. 'order',
    marks = base .. 'marks',
    index = base .. 'index',
    expiry = base .. 'expiry',
  }
end

local SESSIONS = request.user .. 'sessions'

local function unpack_marks(packed)
  local marks = {}
  if packed then
    for mark in string.gmatch(packed, '[^' .. SEPARATOR .. ']+') do marks[mark] = true end
  end
  return marks
end

-- Write a record's marks, given as a set, and make the index agree. Returns whether they changed.
local function set_marks(at, id, old, new)
  local changed, names = false, {}
  for mark in pairs(old) do
    if not new[mark] then
      redis.call('ZREM', at.index, 'mark\0' .. mark .. '\0' .. id)
      changed = true
    end
  end
  for mark in pairs(new) do
    names[#names + 1] = mark
    if not old[mark] then
      redis.call('ZADD', at.index, 0, 'mark\0' .. mark .. '\0' .. id)
      changed = true
    end
  end
  if not changed then return false end
  if #names == 0 then
    redis.call('HDEL', at.marks, id)
  else
    table.sort(names)
    redis.call('HSET', at.marks, id, SEPARATOR .. table.concat(names, SEPARATOR) .. SEPARATOR)
  end
  return true
end

local function marks_of(at, id) return unpack_marks(redis.call('HGET', at.marks, id)) end

local function forget(at, id)
  set_marks(at, id, marks_of(at, id), {})
  local kind = string.match(redis.call('HGET', at.records, id) or '', '^(%Z*)%z')
  if kind then redis.call('ZREM', at.index, 'kind\0' .. kind .. '\0' .. id) end
  redis.call('HDEL', at.records, id)
  redis.call('ZREM', at.order, id)
  redis.call('ZREM', at.expiry, id)
end

local function expire(at)
  local due = redis.call('ZRANGEBYSCORE', at.expiry, '-inf', request.now)
  for _, id in ipairs(due) do forget(at, id) end
end
