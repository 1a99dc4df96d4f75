-- Delete the vectors of a space in a part of a session; return the next cursor and the ids.
local at, dropped = open(request.session), {}
local part = redis.call('HSCAN', at.vectors, request.cursor, 'COUNT', request.most)
for i = 2, #part[2], 2 do
  local spaces = unpacked(part[2][i])
  if spaces[request.space] then
    spaces[request.space] = nil
    keep(at, part[2][i - 1], spaces)
    dropped[#dropped + 1] = part[2][i - 1]
  end
end
return { part[1], dropped }
