-- Run a change once, however often it is sent: its answer is stored for a while under KEYS[2], a key
-- unique to this change, and returned to later attempts.
local function once(change)
  local told = redis.call('GET', KEYS[2])
  if told then return cjson.decode(told) end
  local answer = change()
  redis.call('SET', KEYS[2], cjson.encode(answer), 'EX', request.remembered)
  return answer
end
