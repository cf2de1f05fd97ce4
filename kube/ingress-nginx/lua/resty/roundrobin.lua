-- Nodes in turn, each as often as its weight says and as evenly as can be: whoever is furthest behind its share is next.
local Turns = {}
Turns.__index = Turns

function Turns:reinit(nodes)
  self.behind, self.weights, self.sum = {}, nodes, 0
  for id, weight in pairs(nodes) do
    self.behind[id] = 0
    self.sum = self.sum + weight
  end
end

function Turns:new(nodes)
  local turns = setmetatable({}, Turns)
  turns:reinit(nodes)
  return turns
end

function Turns:find()
  local next_one
  for id, weight in pairs(self.weights) do
    self.behind[id] = self.behind[id] + weight
    if not next_one or self.behind[id] > self.behind[next_one] then
      next_one = id
    end
  end
  if next_one then
    self.behind[next_one] = self.behind[next_one] - self.sum
  end
  return next_one
end

return Turns
