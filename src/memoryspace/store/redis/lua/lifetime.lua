-- The lifetime of sessions and of the lists of sessions and users.

-- Add a user to the list of the slot. A list that is never read would keep obsolete names, so each
-- addition checks two others.
local function list_user()
  if redis.call('ZADD', USERS, 0, request.name) == 0 then return end
  for _, other in ipairs(redis.call('ZRANDMEMBER', USERS, 2)) do
    if redis.call('EXISTS', user_prefix(other) .. 'sessions') == 0 then redis.call('ZREM', USERS, other) end
  end
end

-- Add a session to the user's list. The list expires only if all its sessions do, one second after
-- them. It is cleaned up like the list of users.
local function list_session(session)
  local has_ttl = request.ttl and (redis.call('EXISTS', SESSIONS) == 0 or redis.call('PTTL', SESSIONS) >= 0)
  if redis.call('SADD', SESSIONS, session) == 1 then
    list_user()
    for _, other in ipairs(redis.call('SRANDMEMBER', SESSIONS, 2)) do is_gone(other) end
  end
  if not request.ttl then
    redis.call('PERSIST', SESSIONS)
  elseif has_ttl and redis.call('PTTL', SESSIONS) < (request.ttl + 1) * 1000 then
    redis.call('EXPIRE', SESSIONS, request.ttl + 1)
  end
end

-- Sliding expiry: every use of a session keeps all of it for another ttl seconds. Without a ttl,
-- writing to a session that would expire makes it permanent.
local function keep_alive(is_writing, is_known)
  local session = request.session
  if not session or (not is_known and is_gone(session)) then return end
  local at = keys_of(session)
  if request.ttl then
    for _, part in ipairs(PARTS) do redis.call('EXPIRE', at[part], request.ttl) end
    list_session(session)
  elseif is_writing then
    if redis.call('PTTL', at.order) >= 0 then
      for _, part in ipairs(PARTS) do redis.call('PERSIST', at[part]) end
    end
    list_session(session)
  end
end
