-- Adding records.

-- The counter may have been lost. Seqs must still grow, even past a deleted one.
local function mend_counter(at, last)
  local counter = redis.call('GET', KEYS[1])
  local known = math.max(tonumber(last or 0), counter and 0 or tonumber(redis.call('GET', at.stamp) or 0))
  if known > tonumber(counter or 0) then redis.call('SET', KEYS[1], string.format('%.0f', known)) end
end

-- Append the records at ARGV[first], ARGV[first + 1] (header, body), ...; return the new ids.
local function append(first)
  local at, added = keys_of(request.session), {}
  expire(at)
  local last = redis.call('ZREVRANGE', at.order, 0, 0, 'WITHSCORES')[2]
  mend_counter(at, last)
  for i = first, #ARGV, 2 do
    local new = cjson.decode(ARGV[i])
    local old, marks = marks_of(at, new.id), unpack_marks(new.marks)
    if redis.call('HSETNX', at.records, new.id, new.kind .. '\0' .. ARGV[i + 1]) == 0 then
      for mark in pairs(old) do marks[mark] = true end
    else
      redis.call('ZADD', at.order, redis.call('INCR', KEYS[1]), new.id)
      redis.call('ZADD', at.index, 0, 'kind\0' .. new.kind .. '\0' .. new.id)
      if new.expires_at then redis.call('ZADD', at.expiry, new.expires_at, new.id) end
      added[#added + 1] = new.id
    end
    set_marks(at, new.id, old, marks)
  end
  if not last then restamp(at) end
  return added
end
