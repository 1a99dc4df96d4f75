-- Return those of the next users in the lists that have records, and the last user visited, or '' after
-- all lists were read. ``after`` is a user of the first list.

local function turn_to(user)
  request.name = user
  request.user = user_prefix(user)
  SESSIONS = request.user .. 'sessions'
end

local function has_records()
  for _, session in ipairs(redis.call('SMEMBERS', SESSIONS)) do
    expire(keys_of(session))
    if not is_gone(session) then return true end
  end
  return false
end

local found, visited, low = {}, 0, request.after == '' and '-' or '(' .. request.after
for _, tag in ipairs(request.tags) do
  USERS, COUNTER = users_of(tag), counter_of(tag)
  local room = request.limit - visited
  local names = redis.call('ZRANGEBYLEX', USERS, low, '+', 'LIMIT', 0, room)
  for _, name in ipairs(names) do
    turn_to(name)
    if has_records() then found[#found + 1] = name else redis.call('ZREM', USERS, name) end
  end
  visited = visited + #names
  if visited == request.limit then return { found, names[#names] } end
  low = '-'
end
return { found, '' }
