local added = append(2)
keep_alive()
return added
