-- Store vectors of existing records; return how many. They expire with their session.
local count, touched = 0, {}
for i = 2, #ARGV, 4 do
  local at = standing(i)
  if at then
    local spaces = kept(at, ARGV[i + 1])
    spaces[request.space] = ARGV[i + 3]
    keep(at, ARGV[i + 1], spaces)
    count, touched[at] = count + 1, true
  end
end
for at in pairs(touched) do
  local left = redis.call('PTTL', at.order)
  if left >= 0 then redis.call('PEXPIRE', at.vectors, left) end
end
return count
