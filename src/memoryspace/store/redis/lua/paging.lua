-- Paging over one or several sessions by rank, without visiting the skipped records.
--
-- A run is the part of a session that a page is taken from: all records within the bounds except a few,
-- or, for a rare kind, only those of the kind. Both are lists of { id, seq, keys } in order.

-- How many records of a list have a lower seq.
local function before_in(list, seq)
  local low, high = 0, #list
  while low < high do
    local middle = math.floor((low + high) / 2)
    if list[middle + 1][2] < seq then low = middle + 1 else high = middle end
  end
  return low
end

local function in_order(at, where, ids)
  local passes, found = test_of(at, { after = where.after, before = where.before }), {}
  for id in pairs(ids) do
    local seq = tonumber(redis.call('ZSCORE', at.order, id) or -1)
    if passes(id, seq) then found[#found + 1] = { id, seq, at } end
  end
  table.sort(found, function(a, b) return a[2] < b[2] end)
  return found
end

local function few_of_kind(at, where, unwanted)
  local ids = {}
  for _, id in ipairs(ids_under(at, 'kind\0' .. where.kind)) do
    if not unwanted[id] then ids[id] = true end
  end
  local these = in_order(at, where, ids)
  local first, last = these[1], these[#these]
  return { at = at, these = these, size = #these, first = first and first[2], last = last and last[2] }
end

local function all_but(at, where, unwanted)
  local low, high = bounds(where)
  local run = { at = at, left_out = in_order(at, where, unwanted), low = low }
  run.size = redis.call('ZCOUNT', at.order, low, high) - #run.left_out
  if run.size == 0 then return run end
  local function seq_from(command, from, to)
    return tonumber(redis.call(command, at.order, from, to, 'WITHSCORES', 'LIMIT', 0, 1)[2])
  end
  run.first, run.last = seq_from('ZRANGEBYSCORE', low, high), seq_from('ZREVRANGEBYSCORE', high, low)
  return run
end

local function run_of(part, where)
  local unwanted = where.without and marked(part.at, where.without) or {}
  if part.is_few then return few_of_kind(part.at, where, unwanted) end
  if part.others > 0 then
    for id in pairs(of_other_kinds(part.at, where.kind)) do unwanted[id] = true end
  end
  return all_but(part.at, where, unwanted)
end

local function before_in_run(run, seq)
  if run.these then return before_in(run.these, seq) end
  local bound = '(' .. string.format('%.0f', seq)
  return redis.call('ZCOUNT', run.at.order, run.low, bound) - before_in(run.left_out, seq)
end

-- The seq at ``rank`` in one run, if a single lookup can find it.
local function seq_in(run, rank)
  if run.these then return run.these[rank + 1][2] end
  if #run.left_out > 0 then return nil end
  local place = rank + redis.call('ZCARD', run.at.order) - redis.call('ZCOUNT', run.at.order, run.low, '+inf')
  return tonumber(redis.call('ZRANGE', run.at.order, place, place, 'WITHSCORES')[2])
end

-- The seq at ``rank`` over all runs, by binary search over the range of seqs. A run entirely below the
-- range is counted once, one entirely above it not at all.
local function seq_at(runs, rank)
  local at_once = #runs == 1 and seq_in(runs[1], rank)
  if at_once then return at_once end
  local low, high, passed = math.huge, 0, 0
  for _, run in ipairs(runs) do low, high = math.min(low, run.first), math.max(high, run.last) end
  while low < high do
    local middle, before, left = math.floor((low + high + 1) / 2), passed, {}
    for _, run in ipairs(runs) do before = before + before_in_run(run, middle) end
    if before <= rank then low = middle else high = middle - 1 end
    for _, run in ipairs(runs) do
      if run.last < low then
        passed = passed + run.size
      elseif run.first <= high then
        left[#left + 1] = run
      end
    end
    runs = left
  end
  return low
end

local function add_between(found, run, first, last)
  if run.these then
    for i = before_in(run.these, first) + 1, before_in(run.these, last + 1) do
      found[#found + 1] = run.these[i]
    end
    return
  end
  local from, to = string.format('%.0f', first), string.format('%.0f', last)
  local flat, left_out = redis.call('ZRANGEBYSCORE', run.at.order, from, to, 'WITHSCORES'), {}
  for _, each in ipairs(run.left_out) do left_out[each[1]] = true end
  for i = 1, #flat, 2 do
    if not left_out[flat[i]] then found[#found + 1] = { flat[i], tonumber(flat[i + 1]), run.at } end
  end
end

-- The run of a session that the page may need, counted without visiting it; nil if empty.
local function part_of(at, where)
  expire(at)
  local all = redis.call('ZCARD', at.order)
  local of_kind = where.kind and count_under(at, 'kind\0' .. where.kind) or all
  if of_kind == 0 then return nil end
  local part = { at = at, others = all - of_kind, is_few = 2 * of_kind < all }
  part.left_out = part.is_few and 0 or part.others
  for _, mark in ipairs(where.without or {}) do
    part.left_out = part.left_out + count_under(at, 'mark\0' .. mark)
  end
  return part
end

-- The first ``enough`` matching records of a session, from the requested end.
local function nearest(at, where, enough)
  local command, from, to = 'ZRANGEBYSCORE', bounds(where)
  if where.newest then command, from, to = 'ZREVRANGEBYSCORE', to, from end
  local passes, found, offset, step = test_of(at, where, true), {}, 0, enough
  while true do
    local flat = redis.call(command, at.order, from, to, 'WITHSCORES', 'LIMIT', offset, step)
    for i = 1, #flat, 2 do
      if #found == enough then return found end
      local id, seq = flat[i], tonumber(flat[i + 1])
      if passes(id, seq) then found[#found + 1] = { id, seq, at } end
    end
    if #found == enough or #flat < 2 * step then return found end
    offset, step = offset + step, 2 * step
  end
end

local function by_seq(a, b) return a[2] < b[2] end

-- A page near its starting end, where finding all excluded records would cost more.
local function near_page(parts, where)
  local found = {}
  for _, part in ipairs(parts) do
    local these = part.is_few and run_of(part, where).these
      or nearest(part.at, where, where.skip + where.limit)
    for _, each in ipairs(these) do found[#found + 1] = each end
  end
  table.sort(found, by_seq)
  return limited(found, where)
end

local function far_page(parts, where)
  local runs, total, found = {}, 0, {}
  for _, part in ipairs(parts) do
    local run = run_of(part, where)
    total = total + run.size
    if run.size > 0 then runs[#runs + 1] = run end
  end
  local first, last = page_of(total, where)
  if first > last then return found end
  first, last = seq_at(runs, first), seq_at(runs, last)
  for _, run in ipairs(runs) do
    if run.first <= last and run.last >= first then add_between(found, run, first, last) end
  end
  table.sort(found, by_seq)
  return found
end

local function page(where)
  local parts, left_out = {}, 0
  for _, session in ipairs(sessions()) do
    local part = part_of(keys_of(session), where)
    parts[#parts + 1] = part
    left_out = left_out + (part and part.left_out or 0)
  end
  local is_near = #parts * (where.skip + where.limit) < left_out
  return is_near and near_page(parts, where) or far_page(parts, where)
end

-- All matching records in conversation order: { {id, seq, keys}, ... }
local function matching()
  local where, found = request.where, {}
  if where.limit and not (where.ids or where.marks) then return page(where) end
  if request.session then return limited(matching_in(keys_of(request.session), where), where) end
  for _, session in ipairs(sessions()) do
    for _, each in ipairs(matching_in(keys_of(session), where)) do found[#found + 1] = each end
  end
  table.sort(found, by_seq)
  return limited(found, where)
end
