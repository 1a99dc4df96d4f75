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

-- Tests "does this record carry any of the marks?": by looking each up for a few ids, else by set.
local function carries(at, marks, few)
  if not few then
    local found = marked(at, marks)
    return function(id) return found[id] end
  end
  return function(id)
    for _, mark in ipairs(marks) do
      if redis.call('ZSCORE', at.index, 'mark\0' .. mark .. '\0' .. id) then return true end
    end
    return false
  end
end

-- Tests "is this record of the kind?". Where nearly all are, the others are quicker to know.
local function is_of(at, kind, few)
  local prefix = 'kind\0' .. kind
  local of_kind, all = count_under(at, prefix), redis.call('ZCARD', at.order)
  if of_kind == all then return function() return true end end
  if few or all - of_kind > of_kind then
    return function(id) return redis.call('ZSCORE', at.index, prefix .. '\0' .. id) end
  end
  local others = {}
  for _, range in ipairs({ { '[kind\0', '(' .. prefix .. '\0' }, { '[' .. prefix .. '\1', '(kind\1' } }) do
    for _, member in ipairs(redis.call('ZRANGEBYLEX', at.index, range[1], range[2])) do
      others[string.match(member, '^kind%z%Z*%z(.*)$')] = true
    end
  end
  return function(id) return not others[id] end
end

-- The test that a record passes for all of ``where`` but its limit.
local function test_of(at, where)
  local few = where.ids ~= nil
  local wanted = few and where.marks and carries(at, where.marks, few)
  local unwanted = where.without and carries(at, where.without, few)
  local of_kind = where.kind and is_of(at, where.kind, few)
  local after = where.after and tonumber(where.after)
  return function(id, seq)
    return (not after or seq > after) and (not wanted or wanted(id))
      and not (unwanted and unwanted(id)) and (not of_kind or of_kind(id))
  end
end

-- The records named by ids or marks, as { {id, seq, keys}, ... } in conversation order.
local function named(at, where)
  local ids, found = where.ids, {}
  if not ids then
    ids = {}
    for id in pairs(marked(at, where.marks)) do ids[#ids + 1] = id end
  end
  for _, id in ipairs(ids) do
    local seq = redis.call('ZSCORE', at.order, id)
    if seq then found[#found + 1] = { id, tonumber(seq), at } end
  end
  table.sort(found, function(a, b) return a[2] < b[2] end)
  return found
end

local function limited(found, where)
  local limit = where.limit
  if not limit or #found <= limit then return found end
  local first, kept = where.newest and (#found - limit) or 0, {}
  for i = 1, limit do kept[i] = found[first + i] end
  return kept
end

local function reversed(list)
  local turned = {}
  for i = #list, 1, -1 do turned[#turned + 1] = list[i] end
  return turned
end

-- Walks a session page by page, from the end that is asked for, until the limit is reached.
local function walked(at, where)
  local newest = where.newest and where.limit
  local command = newest and 'ZREVRANGEBYSCORE' or 'ZRANGEBYSCORE'
  local low = where.after and ('(' .. where.after) or '-inf'
  local from, to = newest and '+inf' or low, newest and low or '+inf'
  local page = where.limit and (where.limit + 100) or 100000
  local passes, found, offset = test_of(at, where), {}, 0
  while true do
    local flat = redis.call(command, at.order, from, to, 'WITHSCORES', 'LIMIT', offset, page)
    for i = 1, #flat, 2 do
      if where.limit and #found >= where.limit then break end
      local id, seq = flat[i], tonumber(flat[i + 1])
      if passes(id, seq) then found[#found + 1] = { id, seq, at } end
    end
    if #flat < 2 * page or (where.limit and #found >= where.limit) then break end
    offset = offset + page
  end
  return newest and reversed(found) or found
end

local function matching_in(at, where)
  expire(at)
  if not (where.ids or where.marks) then return walked(at, where) end
  local passes, found = test_of(at, where), {}
  for _, each in ipairs(named(at, where)) do
    if passes(each[1], each[2]) then found[#found + 1] = each end
  end
  return limited(found, where)
end

-- A session that expired is still listed until somebody looks.
local function is_gone(session)
  if redis.call('EXISTS', keys_of(session).order) == 1 then return false end
  redis.call('SREM', SESSIONS, session)
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

-- All that matches, in conversation order: { {id, seq, keys}, ... }
local function matching()
  if request.session then return matching_in(keys_of(request.session), request.where) end
  local found = {}
  for _, session in ipairs(sessions()) do
    for _, each in ipairs(matching_in(keys_of(session), request.where)) do
      found[#found + 1] = each
    end
  end
  table.sort(found, function(a, b) return a[2] < b[2] end)
  return limited(found, request.where)
end

-- List a session that exists. The list expires only if all that were listed do, and a second later
-- than they. A list that is never read would keep the names of sessions long gone, so each new name
-- looks after two others.
local function list_session(session)
  local has_ttl = redis.call('EXISTS', SESSIONS) == 0 or redis.call('PTTL', SESSIONS) >= 0
  if redis.call('SADD', SESSIONS, session) == 1 then
    for _, other in ipairs(redis.call('SRANDMEMBER', SESSIONS, 2)) do is_gone(other) end
  end
  if not request.ttl then
    redis.call('PERSIST', SESSIONS)
  elseif has_ttl and redis.call('PTTL', SESSIONS) < (request.ttl + 1) * 1000 then
    redis.call('EXPIRE', SESSIONS, request.ttl + 1)
  end
end

local PARTS = { 'records', 'order', 'marks', 'index', 'expiry' }

-- Sliding expiry: whoever touches a session keeps all of it for another ttl seconds. Without a ttl,
-- writing to a session that would expire makes all of it stay.
local function keep_alive(is_writing)
  local session = request.session
  if not session or is_gone(session) then return end
  local at = keys_of(session)
  if request.ttl then
    for _, part in ipairs(PARTS) do redis.call('EXPIRE', at[part], request.ttl) end
    list_session(session)
  elseif is_writing then
    if redis.call('PTTL', at.order) >= 0 then
      for _, part in ipairs(PARTS) do redis.call('PERSIST', at[part]) end
    end
    list_session(session)
  end
end

-- The counter may have been lost; places must still grow.
local function next_seq(at)
  local last = redis.call('ZREVRANGE', at.order, 0, 0, 'WITHSCORES')
  if last[2] and tonumber(last[2]) > tonumber(redis.call('GET', KEYS[1]) or 0) then
    redis.call('SET', KEYS[1], last[2])
  end
  return function() return redis.call('INCR', KEYS[1]) end
end

-- Add the records at ARGV[first], ARGV[first + 1] (header, body), ...; returns the new ids.
local function append(first)
  local at, added = keys_of(request.session), {}
  expire(at)
  local new_seq = next_seq(at)
  for i = first, #ARGV, 2 do
    local new = cjson.decode(ARGV[i])
    local old, marks = marks_of(at, new.id), unpack_marks(new.marks)
    if redis.call('HEXISTS', at.records, new.id) == 1 then
      for mark in pairs(old) do marks[mark] = true end
    else
      redis.call('HSET', at.records, new.id, new.kind .. '\0' .. ARGV[i + 1])
      redis.call('ZADD', at.order, new_seq(), new.id)
      redis.call('ZADD', at.index, 0, 'kind\0' .. new.kind .. '\0' .. new.id)
      if new.expires_at then redis.call('ZADD', at.expiry, new.expires_at, new.id) end
      added[#added + 1] = new.id
    end
    set_marks(at, new.id, old, marks)
  end
  return added
end

-- Everything at once needs no looking at each record.
local function drop_session(at)
  expire(at)
  local ids = redis.call('ZRANGE', at.order, 0, -1)
  for _, part in ipairs(PARTS) do redis.call('UNLINK', at[part]) end
  return ids
end

local function delete()
  if request.session and next(request.where) == nil then
    return drop_session(keys_of(request.session))
  end
  local removed = {}
  for i, each in ipairs(matching()) do
    forget(each[3], each[1])
    removed[i] = each[1]
  end
  return removed
end
