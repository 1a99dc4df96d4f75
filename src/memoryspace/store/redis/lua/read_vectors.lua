-- The vectors of the given places, in order; an empty string where there is none.
local found = {}
for i = 2, #ARGV, 3 do
  local at = standing(i)
  found[#found + 1] = at and kept(at, ARGV[i + 1])[request.space] or ''
end
return found
