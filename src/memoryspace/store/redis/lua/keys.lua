-- Shared by all scripts. KEYS[1] is the slot's counter; in a change, KEYS[2] is the key of its answer.
-- ARGV[1] is the request as JSON: prefix (of all keys), name (the user's), tag (of the user's slot),
-- session (or none), now, ttl, where, ...
--
-- All keys that a script uses are in one slot of a cluster (see layout.py).
-- A session is seven keys, however many records it has, so seven EXPIREs renew all of it:
--   :records  hash   id -> its kind, a zero byte, and the record as JSON
--   :order    zset   id by seq, which is conversation order
--   :marks    hash   id -> its marks, with a separator around each
--   :index    zset   "kind\0<kind>\0<id>" and "mark\0<mark>\0<id>", all with score 0, to search by prefix
--   :expiry   zset   id by the time it expires
--   :vectors  hash   id -> its vectors, each as space, zero byte, length, zero byte, vector
--   :stamp    string a number from the counter, a new one after every change other than an append
-- Each user has a set of session names. One zset holds the names of a slot's users.

local request = cjson.decode(ARGV[1])
local SEPARATOR = '\31'
local PARTS = { 'records', 'order', 'marks', 'index', 'expiry', 'vectors', 'stamp' }

local function user_prefix(name) return request.prefix .. 'user:{' .. name .. '}:' end
local function users_of(tag) return request.prefix .. 'users:{' .. tag .. '}' end
local function counter_of(tag) return request.prefix .. 'seq:{' .. tag .. '}' end

request.user = user_prefix(request.name)

local function keys_of(session)
  local at = { session = session }
  for _, part in ipairs(PARTS) do at[part] = request.user .. 'session:' .. session .. ':' .. part end
  return at
end

local SESSIONS = request.user .. 'sessions'
local USERS, COUNTER = users_of(request.tag), counter_of(request.tag)

-- Take ``n`` numbers, each above all that were taken before and above ``least``; return the first.
-- They begin at the time in microseconds. So a counter that was lost, or that a failover set back,
-- gives none again that it gave before.
local function take(n, least)
  local time, known = redis.call('TIME'), tonumber(redis.call('GET', COUNTER) or 0)
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local first = math.max(known + 1, (least or 0) + 1, now)
  redis.call('SET', COUNTER, string.format('%.0f', first + n - 1))
  return first
end

local function unpack_marks(packed)
  local marks = {}
  if packed then
    for mark in string.gmatch(packed, '[^' .. SEPARATOR .. ']+') do marks[mark] = true end
  end
  return marks
end

-- Write a record's marks, given as a set, and update the index. Return whether they changed.
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
  redis.call('HDEL', at.vectors, id)
end

-- Give a session a new stamp, because it is new or was changed by more than an append. The stamp
-- expires with the session's other keys.
local function restamp(at)
  if redis.call('EXISTS', at.order) == 0 then
    redis.call('DEL', at.stamp)
    return
  end
  local stamp = take(1, tonumber(redis.call('GET', at.stamp) or 0))
  redis.call('SET', at.stamp, string.format('%.0f', stamp))
  local left = redis.call('PTTL', at.order)
  if left >= 0 then redis.call('PEXPIRE', at.stamp, left) end
end

local function expire(at)
  local due = redis.call('ZRANGEBYSCORE', at.expiry, '-inf', request.now)
  if #due == 0 then return end
  for _, id in ipairs(due) do forget(at, id) end
  restamp(at)
end

-- An expired session stays listed until the list is read.
local function is_gone(session)
  if redis.call('EXISTS', keys_of(session).order) == 1 then return false end
  if redis.call('SREM', SESSIONS, session) == 1 and redis.call('EXISTS', SESSIONS) == 0 then
    redis.call('ZREM', USERS, request.name)
  end
  return true
end

local function sessions()
  if request.session then return { request.session } end
  local alive = {}
  for _, session in ipairs(redis.call('SMEMBERS', SESSIONS)) do
    if not is_gone(session) then alive[#alive + 1] = session end
  end
  return alive
end
