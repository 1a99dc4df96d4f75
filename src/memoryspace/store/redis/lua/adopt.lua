-- Move a user's keys from the layout of earlier versions, in one step; return how many sessions and
-- records. ``sessions`` names those to move beside those that the old list has. The old names had
-- braces as they were.
--
-- A session that exists under both names was written by an earlier version after it had moved. What it
-- has more is added; of a record in both, the new version stays.

local old_user = request.prefix .. 'user_id:' .. request.old .. ':'
local OLD_SESSIONS, OLD_USERS = old_user .. 'sessions', request.prefix .. 'memoryspace:users'

local function renamed(name) return (string.gsub(string.gsub(name, '{', '%%7B'), '}', '%%7D')) end

local function old_keys_of(session)
  local at = {}
  for _, part in ipairs(PARTS) do at[part] = old_user .. 'session:' .. session .. ':' .. part end
  return at
end

local function rename(from, to)
  for _, part in ipairs(PARTS) do
    if redis.call('EXISTS', from[part]) == 1 then redis.call('RENAME', from[part], to[part]) end
  end
end

local function copy(from, to, id, seq)
  local record = redis.call('HGET', from.records, id)
  if not record or redis.call('HSETNX', to.records, id, record) == 0 then return end
  redis.call('ZADD', to.order, seq, id)
  redis.call('ZADD', to.index, 0, 'kind\0' .. string.match(record, '^(%Z*)%z') .. '\0' .. id)
  local due, vectors = redis.call('ZSCORE', from.expiry, id), redis.call('HGET', from.vectors, id)
  if due then redis.call('ZADD', to.expiry, due, id) end
  if vectors then redis.call('HSET', to.vectors, id, vectors) end
end

local function merge(from, to)
  local all = redis.call('ZRANGE', from.order, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    copy(from, to, all[i], all[i + 1])
    local marks = marks_of(to, all[i])
    local more = unpack_marks(redis.call('HGET', from.marks, all[i]))
    for mark in pairs(marks) do more[mark] = true end
    set_marks(to, all[i], marks, more)
  end
  restamp(to)
end

-- The list of sessions lives as long as the one that lives longest.
local function list(session, left)
  local known = redis.call('PTTL', SESSIONS)
  if redis.call('SADD', SESSIONS, session) == 1 then list_user() end
  if left < 0 then
    redis.call('PERSIST', SESSIONS)
  elseif known == -2 or (known >= 0 and known < left + 1000) then
    redis.call('PEXPIRE', SESSIONS, left + 1000)
  end
end

local sessions_moved, records_moved = 0, 0
local function move(session)
  local from, to = old_keys_of(session), keys_of(renamed(session))
  local count, left = redis.call('ZCARD', from.order), redis.call('PTTL', from.order)
  if count > 0 then
    if redis.call('EXISTS', to.order) == 1 then merge(from, to) else rename(from, to) end
    list(renamed(session), left)
    sessions_moved, records_moved = sessions_moved + 1, records_moved + count
  end
  for _, part in ipairs(PARTS) do redis.call('UNLINK', from[part]) end -- what is left is of no record
end

for _, session in ipairs(redis.call('SMEMBERS', OLD_SESSIONS)) do move(session) end
for _, session in ipairs(request.sessions) do move(session) end
redis.call('UNLINK', OLD_SESSIONS)
redis.call('ZREM', OLD_USERS, request.old)
return { sessions_moved, records_moved }
