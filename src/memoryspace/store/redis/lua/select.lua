-- One reply per record: "<seq> <session>\n<id>\n<marks>\n<kind>\0<record>".
-- Fetched in batches: a call costs more than what it fetches.
local BATCH = 500
local found, replies = matching(), {}

local function fetch(at, first, last)
  local ids = {}
  for i = first, last do ids[#ids + 1] = found[i][1] end
  local records = redis.call('HMGET', at.records, unpack(ids))
  local marks = redis.call('HMGET', at.marks, unpack(ids))
  for i, id in ipairs(ids) do
    local head = string.format('%.0f', found[first + i - 1][2]) .. ' ' .. at.session
    replies[first + i - 1] = head .. '\n' .. id .. '\n' .. (marks[i] or '') .. '\n' .. (records[i] or '')
  end
end

local first = 1
while first <= #found do
  local at, last = found[first][3], first
  while last < #found and last - first + 1 < BATCH and found[last + 1][3] == at do last = last + 1 end
  fetch(at, first, last)
  first = last + 1
end
keep_alive()
return replies
