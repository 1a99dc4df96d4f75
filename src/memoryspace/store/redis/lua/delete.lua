local removed = delete()
drop_empty_sessions()
keep_alive()
return removed
