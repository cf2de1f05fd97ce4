-- Debian's name for it.
return require("nginx.cookie")
