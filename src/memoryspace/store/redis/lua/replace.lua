delete()
local added = append(2)
keep_alive(true)
return added
