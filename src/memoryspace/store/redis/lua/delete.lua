return once(function()
  local removed = delete()
  sessions() -- looks which are gone now
  keep_alive(true)
  return removed
end)
