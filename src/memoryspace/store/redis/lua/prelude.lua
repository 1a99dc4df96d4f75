-- What every verb shares. KEYS[1] is the key of the store's counter. ARGV[1] is one JSON document,
-- the request: user (the prefix of all the user's keys), session (or none), now, ttl, where, ...
--
-- A session is five keys, so one EXPIRE each keeps it together, however many records it holds:
--   :records  hash   id -> the record as JSON
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

-- Ids in the index under a prefix. The separator after the prefix is a zero byte, so a byte one
-- higher bounds the range.
local function ids_under(at, prefix)
  local members = redis.call('ZRANGEBYLEX', at.index, '[' .. prefix .. '\0', '(' .. prefix .. '\1')
  local skip, ids = #prefix + 2, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, skip) end
  return ids
end

local function count_under(at, prefix)
  return redis.call('ZLEXCOUNT', at.index, '[' .. prefix .. '\0', '(' .. prefix .. '\1')
end

local function marked(at, marks)
  local found = {}
  for _, mark in ipairs(marks) do
    for _, id in ipairs(ids_under(at, 'mark\0' .. mark)) do found[id] = true end
  end
  return found
end

-- The ids that may match, with their seqs: { {id, seq}, ... } in conversation order.
local function candidates(at, where)
  local found = {}
  if where.ids or where.marks then
    local ids = where.ids
    if not ids then
      ids = {}
      for id in pairs(marked(at, where.marks)) do ids[#ids + 1] = id end
    end
    for _, id in ipairs(ids) do
      local seq = redis.call('ZSCORE', at.order, id)
      if seq then found[#found + 1] = { id, tonumber(seq) } end
    end
    table.sort(found, function(a, b) return a[2] < b[2] end)
    return found
  end
  local from = where.after and ('(' .. where.after) or '-inf'
  local flat = redis.call('ZRANGEBYSCORE', at.order, from, '+inf', 'WITHSCORES')
  for i = 1, #flat, 2 do found[#found + 1] = { flat[i], tonumber(flat[i + 1]) } end
  return found
end

local function matching_in(at, where)
  expire(at)
  local wanted = where.ids and where.marks and marked(at, where.marks)
  local unwanted = where.without and marked(at, where.without)
  local after = where.after and tonumber(where.after)
  local kind = where.kind and ('kind\0' .. where.kind)
  if kind and count_under(at, kind) == redis.call('ZCARD', at.order) then kind = nil end
  local found = {}
  for _, each in ipairs(candidates(at, where)) do
    local id, seq = each[1], each[2]
    if (not wanted or wanted[id]) and not (unwanted and unwanted[id])
      and (not after or seq > after)
      and (not kind or redis.call('ZSCORE', at.index, kind .. '\0' .. id))
    then
      found[#found + 1] = { id, seq, at }
    end
  end
  return found
end

local function sessions()
  if request.session then return { request.session } end
  return redis.call('SMEMBERS', SESSIONS)
end

-- All that matches, in conversation order: { {id, seq, keys}, ... }
local function matching()
  local where, found = request.where, {}
  for _, session in ipairs(sessions()) do
    for _, each in ipairs(matching_in(keys_of(session), where)) do found[#found + 1] = each end
  end
  if not request.session then
    table.sort(found, function(a, b) return a[2] < b[2] end)
  end
  local limit = where.limit
  if not limit or #found <= limit then return found end
  local first = where.newest and (#found - limit) or 0
  local kept = {}
  for i = 1, limit do kept[i] = found[first + i] end
  return kept
end

local function drop_empty_sessions()
  for _, session in ipairs(sessions()) do
    if redis.call('EXISTS', keys_of(session).order) == 0 then
      redis.call('SREM', SESSIONS, session)
    end
  end
end

-- Sliding expiry: whoever touches a session keeps all of it for another ttl seconds, and the list
-- of sessions lives at least as long.
local function keep_alive()
  if not request.ttl then return end
  for _, session in ipairs(sessions()) do
    local at = keys_of(session)
    for _, name in ipairs({ 'records', 'order', 'marks', 'index', 'expiry' }) do
      redis.call('EXPIRE', at[name], request.ttl)
    end
  end
  local left = redis.call('TTL', SESSIONS)
  if left >= 0 and left < request.ttl then redis.call('EXPIRE', SESSIONS, request.ttl) end
end

-- A list of sessions that expires was made by sessions that do; one that does not makes it stay.
local function list_session(session)
  local is_new = redis.call('EXISTS', SESSIONS) == 0
  redis.call('SADD', SESSIONS, session)
  if not request.ttl then
    redis.call('PERSIST', SESSIONS)
  elseif is_new then
    redis.call('EXPIRE', SESSIONS, request.ttl)
  end
end

-- Add the records at ARGV[first], ARGV[first + 1] (header, body), ...; returns the new ids.
local function append(first)
  local at, added = keys_of(request.session), {}
  expire(at)
  for i = first, #ARGV, 2 do
    local new = cjson.decode(ARGV[i])
    local marks = unpack_marks(new.marks)
    if redis.call('HEXISTS', at.records, new.id) == 1 then
      local old = marks_of(at, new.id)
      local united = {}
      for mark in pairs(old) do united[mark] = true end
      for mark in pairs(marks) do united[mark] = true end
      set_marks(at, new.id, old, united)
    else
      redis.call('HSET', at.records, new.id, new.kind .. '\0' .. ARGV[i + 1])
      redis.call('ZADD', at.order, redis.call('INCR', KEYS[1]), new.id)
      redis.call('ZADD', at.index, 0, 'kind\0' .. new.kind .. '\0' .. new.id)
      if new.expires_at then redis.call('ZADD', at.expiry, new.expires_at, new.id) end
      set_marks(at, new.id, {}, marks)
      added[#added + 1] = new.id
    end
  end
  if #added > 0 then list_session(request.session) end
  return added
end

local function delete()
  local removed = {}
  for i, each in ipairs(matching()) do
    forget(each[3], each[1])
    removed[i] = each[1]
  end
  return removed
end
