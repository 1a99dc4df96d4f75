-- Run a change once, however often it is sent: its answer is stored for a while under KEYS[2], a key
-- unique to this change, and returned to later attempts. Those write too: WAIT waits for the replicas to
-- have the last write of its connection, and a connection that only read has none.
local function once(change)
  local told = redis.call('GET', KEYS[2])
  if told then
    redis.call('EXPIRE', KEYS[2], request.remembered)
    return cjson.decode(told)
  end
  local answer = change()
  redis.call('SET', KEYS[2], cjson.encode(answer), 'EX', request.remembered)
  return answer
end
