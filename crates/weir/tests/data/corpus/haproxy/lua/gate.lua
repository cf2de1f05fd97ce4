-- Asks the gate keeper, which is none of the servers of the configuration.
core.register_action("gate", { "http-req" }, function(txn)
  local tcp = core.tcp()
  tcp:settimeout(1)
  local open = tcp:connect("192.0.2.129", 9000)
  txn:set_var("txn.may", open ~= nil)
end)
