delete()
local added = append(2)
drop_empty_sessions()
keep_alive()
return added
