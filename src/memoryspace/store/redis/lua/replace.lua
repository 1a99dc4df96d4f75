return once(function()
  local removed, added = delete(), {}
  local may_add = #removed > 0 or not request.if_found
  if may_add then added = append(2) end
  keep_alive(may_add)
  return added
end)
