-- What changed since ``known``, which maps a session to its stamp and last seq. Returns the current
-- stamps and last seqs as a flat list; for each session changed by more than appends, its name and
-- its contents as one text; and the new records, session by session.
local states, kept, found = {}, {}, {}

local function look_at(session, at, last)
  local stamp, known = redis.call('GET', at.stamp) or '0', request.known[session]
  for _, each in ipairs({ session, stamp, last }) do states[#states + 1] = each end
  if known and known[1] == stamp and known[2] == last then return end
  if known and known[1] ~= stamp then
    local all = redis.call('ZRANGE', at.order, 0, -1, 'WITHSCORES')
    kept[#kept + 1] = { session, table.concat(all, BETWEEN) }
  end
  for _, each in ipairs(walked(at, { after = known and known[2] })) do found[#found + 1] = each end
end

for _, session in ipairs(redis.call('SMEMBERS', SESSIONS)) do
  local at = keys_of(session)
  expire(at)
  local last = redis.call('ZREVRANGE', at.order, 0, 0, 'WITHSCORES')[2]
  if last then look_at(session, at, last) else is_gone(session) end
end
return { states, kept, fetched(found) }
