-- Adding and removing records.

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
