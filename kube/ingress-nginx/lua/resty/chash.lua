-- The node whose hash with the key is highest: a node that goes takes only its own keys along. The real module has a
-- ring, which gives a key to another node than this does.
local Highest = {}
Highest.__index = Highest

function Highest:reinit(nodes)
  self.ids = {}
  for id in pairs(nodes) do
    table.insert(self.ids, id)
  end
  -- Equal hashes are decided by the order.
  table.sort(self.ids)
end

function Highest:new(nodes)
  local highest = setmetatable({}, Highest)
  highest:reinit(nodes)
  return highest
end

function Highest:find(key)
  local found, best = nil, -1
  for _, id in ipairs(self.ids) do
    local hash = ngx.crc32_long(id .. " " .. tostring(key))
    if hash > best then
      found, best = id, hash
    end
  end
  return found
end

return Highest
