local replies = fetched(matching())
keep_alive(false)
return replies
