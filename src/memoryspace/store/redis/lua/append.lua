return once(function()
  local added = append(2)
  keep_alive(true, true)
  return added
end)
