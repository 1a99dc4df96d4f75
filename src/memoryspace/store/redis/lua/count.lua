local found
if request.only_kind and request.session then
  local at = keys_of(request.session)
  expire(at)
  found = request.where.kind and count_under(at, 'kind\0' .. request.where.kind)
    or redis.call('ZCARD', at.order)
else
  found = #matching()
end
keep_alive(false)
return found
