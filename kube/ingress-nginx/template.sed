# Makes the controller's template fit Debian's nginx 1.22, whose modules are loaded, not built in.
/^pid /a\
load_module /usr/lib/nginx/modules/ndk_http_module.so;\
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;\
load_module /usr/lib/nginx/modules/ngx_http_headers_more_filter_module.so;
# A directive of nginx 1.25.
/^ *http2 on;/d
# Debian has no Lua for streams, so TCP and UDP services are lost. The controller gives its list of them to this port
# once, and wants an answer.
/^stream {/,/^}/d
/# default server, used for NGINX healthcheck/i\
    server { listen 127.0.0.1:{{ .StreamPort }}; access_log off; return 204; }
