-- Debian's name for it.
return require("nginx.dns.resolver")
