-- Deleting records.

-- Delete a whole session without visiting each record.
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
  local removed, touched = {}, {}
  for i, each in ipairs(matching()) do
    forget(each[3], each[1])
    removed[i], touched[each[3]] = each[1], true
  end
  for at in pairs(touched) do restamp(at) end
  return removed
end
