-- List a part of a session's vectors: the next cursor, then id, space and size of each vector.
local at, said = open(request.session), {}
local part = redis.call('HSCAN', at.vectors, request.cursor, 'COUNT', request.most)
for i = 2, #part[2], 2 do
  for space, vector in pairs(unpacked(part[2][i])) do
    said[#said + 1] = part[2][i - 1]
    said[#said + 1] = space
    said[#said + 1] = tostring(#vector)
  end
end
return { part[1], said }
