-- The vectors of the places that are named, in their order; empty where there is none.
local found = {}
for i = 2, #ARGV, 3 do
  local at = standing(i)
  found[#found + 1] = at and kept(at, ARGV[i + 1])[request.space] or ''
end
return found
