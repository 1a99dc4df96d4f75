return once(function()
  local changed = 0
  for _, each in ipairs(matching()) do
    local id, at = each[1], each[3]
    local old = marks_of(at, id)
    local new = {}
    for mark in pairs(old) do new[mark] = true end
    for _, mark in ipairs(request.remove) do new[mark] = nil end
    for _, mark in ipairs(request.add) do new[mark] = true end
    if set_marks(at, id, old, new) then changed = changed + 1 end
  end
  keep_alive(true)
  return changed
end)
