-- Asked only where OCSP stapling or the global rate limit is switched on.
return { new = function() return nil, "resty.global_throttle is not in this test" end }
