-- A change happens once, however often it arrives: its answer is remembered for a while under KEYS[2],
-- a name of this one change, and whoever sends it again is told the same.
local function once(change)
  local told = redis.call('GET', KEYS[2])
  if told then return cjson.decode(told) end
  local answer = change()
  redis.call('SET', KEYS[2], cjson.encode(answer), 'EX', request.remembered)
  return answer
end
