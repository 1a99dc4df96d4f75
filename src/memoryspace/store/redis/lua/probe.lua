-- Return the places of those of the keys in ARGV that exist, each with 1, or -1 if it is not known here:
-- a server of a cluster refuses to look at a key whose slot it does not have.
local found = {}
for place, key in ipairs(ARGV) do
  local said = redis.pcall('EXISTS', key)
  if said ~= 0 then
    found[#found + 1] = place - 1
    found[#found + 1] = said == 1 and 1 or -1
  end
end
return found
