-- The list of all users, which an older store does not have yet: take in names, or look if it is there.
for i = 2, #ARGV do redis.call('ZADD', USERS, 0, ARGV[i]) end
if request.is_whole then redis.call('SET', USERS .. ':whole', '1') end
return redis.call('EXISTS', USERS .. ':whole')
