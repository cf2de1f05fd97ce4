-- A lock in a shared dictionary, tried once: the balancer that asks for one does not wait.
local Lock = {}
Lock.__index = Lock

function Lock:new(name, options)
  local shared = ngx.shared[name]
  if not shared then
    return nil, "no dictionary " .. name
  end
  return setmetatable({ shared = shared, lasts = options and options.exptime or 30 }, Lock)
end

function Lock:lock(key)
  local is_ours, why = self.shared:add(key, true, self.lasts)
  if is_ours then
    self.key = key
    return 0
  end
  return nil, why == "exists" and "timeout" or why
end

function Lock:unlock()
  if not self.key then
    return nil, "unlocked"
  end
  self.shared:delete(self.key)
  self.key = nil
  return 1
end

return Lock
