-- Selecting the records of a request.

-- Ids in the index under a prefix. A zero byte separates the prefix from the id, so the byte one
-- higher ends the range.
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

-- A test whether a record has any of the marks: by lookup for few ids, by a set for many.
local function carries(at, marks, few)
  if not few then
    local found = marked(at, marks)
    return function(id) return found[id] end
  end
  local used = {}
  for _, mark in ipairs(marks) do
    if count_under(at, 'mark\0' .. mark) > 0 then used[#used + 1] = mark end
  end
  return function(id)
    for _, mark in ipairs(used) do
      if redis.call('ZSCORE', at.index, 'mark\0' .. mark .. '\0' .. id) then return true end
    end
    return false
  end
end

local function of_other_kinds(at, kind)
  local before, after = 'kind\0' .. kind .. '\0', 'kind\0' .. kind .. '\1'
  local others = {}
  for _, range in ipairs({ { '[kind\0', '(' .. before }, { '[' .. after, '(kind\1' } }) do
    for _, member in ipairs(redis.call('ZRANGEBYLEX', at.index, range[1], range[2])) do
      others[string.match(member, '^kind%z%Z*%z(.*)$')] = true
    end
  end
  return others
end

-- A test whether a record is of the kind. If nearly all are, it excludes the others instead.
local function is_of(at, kind, few)
  local prefix = 'kind\0' .. kind
  local of_kind, all = count_under(at, prefix), redis.call('ZCARD', at.order)
  if of_kind == all then return function() return true end end
  if few or all - of_kind > of_kind then
    return function(id) return redis.call('ZSCORE', at.index, prefix .. '\0' .. id) end
  end
  local others = of_other_kinds(at, kind)
  return function(id) return not others[id] end
end

-- The test for all of ``where`` except its page, for ``few`` records or for many.
local function test_of(at, where, few)
  local wanted = where.ids and where.marks and carries(at, where.marks, few)
  local unwanted = where.without and carries(at, where.without, few)
  local of_kind = where.kind and is_of(at, where.kind, few)
  local after, before = tonumber(where.after or -1), tonumber(where.before or math.huge)
  return function(id, seq)
    return seq > after and seq < before and (not wanted or wanted(id))
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

-- The range of the page among the matching records, counted from 0.
local function page_of(total, where)
  local first, last = where.skip, where.skip + where.limit - 1
  if where.newest then first, last = total - 1 - last, total - 1 - first end
  return math.max(first, 0), math.min(last, total - 1)
end

local function limited(found, where)
  if not where.limit then return found end
  local first, last = page_of(#found, where)
  local kept = {}
  for i = first, last do kept[#kept + 1] = found[i + 1] end
  return kept
end

-- The bounds of ``where`` as score ranges.
local function bounds(where)
  return where.after and ('(' .. where.after) or '-inf', where.before and ('(' .. where.before) or '+inf'
end

-- Iterate over a session in parts.
local function walked(at, where)
  local low, high = bounds(where)
  local passes, found, offset, part = test_of(at, where), {}, 0, 100000
  while true do
    local flat = redis.call('ZRANGEBYSCORE', at.order, low, high, 'WITHSCORES', 'LIMIT', offset, part)
    for i = 1, #flat, 2 do
      local id, seq = flat[i], tonumber(flat[i + 1])
      if passes(id, seq) then found[#found + 1] = { id, seq, at } end
    end
    if #flat < 2 * part then return found end
    offset = offset + part
  end
end

-- Look up each record of a rare kind; most sessions have none.
local function of_rare_kind(at, where)
  local found, passes = {}, test_of(at, where, true)
  for _, id in ipairs(ids_under(at, 'kind\0' .. where.kind)) do
    local seq = tonumber(redis.call('ZSCORE', at.order, id))
    if seq and passes(id, seq) then found[#found + 1] = { id, seq, at } end
  end
  table.sort(found, function(a, b) return a[2] < b[2] end)
  return found
end

local function is_rare(at, kind)
  return 10 * count_under(at, 'kind\0' .. kind) < redis.call('ZCARD', at.order)
end

local function matching_in(at, where)
  expire(at)
  if not (where.ids or where.marks) then
    if where.kind and is_rare(at, where.kind) then return of_rare_kind(at, where) end
    return walked(at, where)
  end
  local passes, found = test_of(at, where, where.ids ~= nil), {}
  for _, each in ipairs(named(at, where)) do
    if passes(each[1], each[2]) then found[#found + 1] = each end
  end
  return found
end
