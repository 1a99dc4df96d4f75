-- Which records a request is about.

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
