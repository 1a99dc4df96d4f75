-- The list of all users, which older stores lack: add names, and return whether the list is complete.
for i = 2, #ARGV do redis.call('ZADD', USERS, 0, ARGV[i]) end
if request.is_whole then redis.call('SET', USERS .. ':whole', '1') end
return redis.call('EXISTS', USERS .. ':whole')
