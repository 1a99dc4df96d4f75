-- Return those of the next users in the list that have records, and the last user visited.

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

local low = request.after == '' and '-' or '(' .. request.after
local names = redis.call('ZRANGEBYLEX', USERS, low, '+', 'LIMIT', 0, request.limit)
local found = {}
for _, name in ipairs(names) do
  turn_to(name)
  if has_records() then found[#found + 1] = name else redis.call('ZREM', USERS, name) end
end
return { found, #names == request.limit and names[#names] or '' }
