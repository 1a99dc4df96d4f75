local names = {}
for _, session in ipairs(sessions()) do
  expire(keys_of(session))
  if not is_gone(session) then names[#names + 1] = session end
end
return names
