-- Adding records.

-- Append the records at ARGV[first], ARGV[first + 1] (header, body), ...; return the new ids.
local function append(first)
  local at, added, seq = keys_of(request.session), {}, nil
  expire(at)
  local last = redis.call('ZREVRANGE', at.order, 0, 0, 'WITHSCORES')[2]
  for i = first, #ARGV, 2 do
    local new = cjson.decode(ARGV[i])
    local old, marks = marks_of(at, new.id), unpack_marks(new.marks)
    if redis.call('HSETNX', at.records, new.id, new.kind .. '\0' .. ARGV[i + 1]) == 0 then
      for mark in pairs(old) do marks[mark] = true end
    else
      seq = seq and seq + 1 or take((#ARGV - i + 1) / 2, tonumber(last))
      redis.call('ZADD', at.order, string.format('%.0f', seq), new.id)
      redis.call('ZADD', at.index, 0, 'kind\0' .. new.kind .. '\0' .. new.id)
      if new.expires_at then redis.call('ZADD', at.expiry, new.expires_at, new.id) end
      added[#added + 1] = new.id
    end
    set_marks(at, new.id, old, marks)
  end
  if not last then restamp(at) end
  return added
end
