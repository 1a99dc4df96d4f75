-- The usage of a part of a session: the number of records after a seq, their bytes, and the last seq.
local at = keys_of(request.session)
expire(at)
local part = redis.call('ZRANGEBYSCORE', at.order, '(' .. request.after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1000)
local bytes = 0
for i = 1, #part, 2 do bytes = bytes + redis.call('HSTRLEN', at.records, part[i]) end
return { #part / 2, bytes, part[#part] or '' }
