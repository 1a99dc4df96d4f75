-- Sending records to the client.
--
-- One piece per record: "<seq> <session>\n<id>\n<marks>\n<kind>\0<record>". Pieces are fetched and
-- sent in batches with a separator in between: a call or a reply costs more than its contents.
-- No piece contains the separator: ids and marks have no control characters, and JSON escapes them.
local BATCH = 500
local BETWEEN = '\30'

local function fetch(found, first, last)
  local at, ids, pieces = found[first][3], {}, {}
  for i = first, last do ids[#ids + 1] = found[i][1] end
  local records = redis.call('HMGET', at.records, unpack(ids))
  local marks = redis.call('HMGET', at.marks, unpack(ids))
  for i, id in ipairs(ids) do
    local place = string.format('%.0f', found[first + i - 1][2]) .. ' ' .. at.session
    pieces[i] = place .. '\n' .. id .. '\n' .. (marks[i] or '') .. '\n' .. (records[i] or '')
  end
  return table.concat(pieces, BETWEEN)
end

local function fetched(found)
  local replies, first = {}, 1
  while first <= #found do
    local at, last = found[first][3], first
    while last < #found and last - first + 1 < BATCH and found[last + 1][3] == at do last = last + 1 end
    replies[#replies + 1] = fetch(found, first, last)
    first = last + 1
  end
  return replies
end
