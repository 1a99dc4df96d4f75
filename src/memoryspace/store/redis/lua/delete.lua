return once(function()
  local removed = delete()
  sessions() -- removes those that are now empty from the list
  keep_alive(true)
  return removed
end)
