//! What of `tests/data/corpus` is taken all the way, and how: one row for each shape.

/// A configuration after the shape of public ones.
pub(crate) struct Shape {
    /// The proxy's folder, and in it a file, a folder of files, or a folder with its main file.
    pub(crate) main: &'static str,
    /// Whose configurations look like it.
    pub(crate) like: &'static str,
    /// What loads ask for. `https` is a load over TLS; a port is that of the study's `proxy`.
    pub(crate) asked: &'static [&'static str],
    /// What the arm changes, as a study says it.
    pub(crate) setting: &'static str,
    /// More keys of the study's `proxy`, and more fields of its requests.
    pub(crate) proxy: &'static str,
    pub(crate) fields: &'static str,
}

const fn shape(
    main: &'static str,
    like: &'static str,
    asked: &'static [&'static str],
    setting: &'static str,
) -> Shape {
    Shape {
        main,
        like,
        asked,
        setting,
        proxy: "",
        fields: "",
    }
}

pub(crate) const SHAPES: &[Shape] = &[
    shape(
        "nginx/docker/nginx.conf",
        "the official image, a site in `conf.d`",
        &["http://tickets.example.org/"],
        "origin_keepalive: 32",
    ),
    shape(
        "nginx/sites-enabled/nginx.conf",
        "Debian's `sites-enabled`, one site in clear and one with TLS",
        &[
            "https://bakery.example.org/",
            "http://bakery.internal.example.org:8080/",
        ],
        "gzip_comp_level: 5",
    ),
    shape(
        "nginx/certbot/nginx.conf",
        "a site that Certbot has changed",
        &["https://blog.example.org/"],
        "ssl_session_tickets: on",
    ),
    Shape {
        proxy: ", role: {static-files: {size: 1KiB}}",
        ..shape(
            "nginx/boilerplate/nginx.conf",
            "a boilerplate of many small files, static content",
            &["http://garden.example.org/"],
            "open_file_cache: max=1000 inactive=20s",
        )
    },
    shape(
        "nginx/generator/nginx.conf",
        "a generator of configurations: maps of regular expressions, redirects, TLS",
        &["https://radio.example.org/"],
        "ssl_buffer_size: 4k",
    ),
    shape(
        "nginx/wordpress/nginx.conf",
        "WordPress behind PHP-FPM, with a FastCGI cache",
        &["http://poems.example.org/"],
        "gzip: on",
    ),
    shape(
        "nginx/nextcloud.conf",
        "the reverse proxy of a file cloud, both schemes in one server",
        &["https://files.example.org/"],
        "ssl_session_timeout: 600s",
    ),
    shape(
        "nginx/gitlab/nginx.conf",
        "GitLab's package: filtered logs, a Unix socket, a status server",
        &["http://forge.example.org/"],
        "origin_keepalive: 32",
    ),
    shape(
        "nginx/discourse.conf",
        "a forum: limits, nested locations, a named one for the rest",
        &["http://forum.example.org/"],
        "proxy_buffering: off",
    ),
    shape(
        "nginx/ingress.conf",
        "the controller of a cluster: the balancer is Lua",
        &["http://cheese.example.org/"],
        "worker_processes: 1",
    ),
    shape(
        "nginx/openresty.conf",
        "an API gateway in Lua with a store of its own",
        &["http://api.example.org/api/"],
        "gzip: on",
    ),
    shape(
        "nginx/websocket.conf",
        "WebSockets by a map of `$http_upgrade`",
        &["http://chat.example.org/"],
        "origin_keepalive: 32",
    ),
    shape(
        "nginx/grpc.conf",
        "gRPC beside HTTP/1.1 in one server",
        &["http://rpc.example.org/"],
        "keepalive_timeout: 30s",
    ),
    shape(
        "nginx/grpc-only.conf",
        "gRPC alone, in clear",
        &["http://rpc.example.org/"],
        "keepalive_requests: 100",
    ),
    shape(
        "nginx/varnish.conf",
        "the end of TLS before a cache, nothing in clear",
        &["https://news.example.org/"],
        "ssl_protocols: TLSv1.3",
    ),
    shape(
        "nginx/balancer.conf",
        "a balancer with weights, spares and kept connections",
        &["http://fleet.example.org/"],
        "origin_keepalive: 64",
    ),
    shape(
        "nginx/microcache.conf",
        "pages kept for a second",
        &["http://pages.example.org/"],
        "access_log: off",
    ),
    shape(
        "nginx/memcached.conf",
        "pages from memcached, an application behind it",
        &["http://press.example.org/"],
        "keepalive_requests: 200",
    ),
    shape(
        "nginx/single-sign-on.conf",
        "who asks is asked for before (`auth_request`)",
        &["http://wiki.example.org/"],
        "tcp_nopush: on",
    ),
    shape(
        "nginx/status-first/nginx.conf",
        "status and redirect servers before the real one",
        &["http://orders.example.org:8120/"],
        "worker_connections: 512",
    ),
    shape(
        "nginx/gunicorn.conf",
        "a Python application at a Unix socket, `try_files`",
        &["http://polls.example.org/"],
        "multi_accept: on",
    ),
    shape(
        "nginx/compose/nginx.conf",
        "made from the containers that run, 503 by default",
        &["http://photos.example.org/"],
        "origin_keepalive: 16",
    ),
    shape(
        "nginx/resolver.conf",
        "origin servers in variables, looked up while it runs",
        &["http://notes.example.org/"],
        "reuseport: on",
    ),
    shape(
        "nginx/canary.conf",
        "one client in ten sees the next version (`split_clients`)",
        &["http://next.example.org/"],
        "origin_keepalive: 8",
    ),
    shape(
        "nginx/strict-tls.conf",
        "no handshake for unknown names",
        &["https://bank.example.org/"],
        "ssl_session_cache: 1m",
    ),
    shape(
        "nginx/mutual-tls.conf",
        "partners with certificates",
        &["https://partners.example.org/"],
        "ssl_session_cache: 1m",
    ),
    Shape {
        fields: ", Authorization: Basic bWVtYmVyOmEtc2VjcmV0LW9mLXRoZS1ib2FyZA==",
        ..shape(
            "nginx/members/nginx.conf",
            "passwords and addresses",
            &["http://board.example.org/"],
            "backlog: 2048",
        )
    },
    shape(
        "nginx/stream.conf",
        "TLS passed on by name (`stream`)",
        &["https://mail.example.org/"],
        "worker_processes: 1",
    ),
    shape(
        "nginx/windows.conf",
        "lines that end in CR LF",
        &["http://desk.example.org/"],
        "keepalive_timeout: 30s",
    ),
    shape(
        "haproxy/quick-start.cfg",
        "the manual's first example: statistics first",
        &["http://tea.example.org:80/"],
        "http_reuse: always",
    ),
    shape(
        "haproxy/firewall/haproxy.cfg",
        "a firewall's package: TLS by `crt-list`, its own statistics in clear",
        &["https://cams.example.org/"],
        "tune_bufsize: 32k",
    ),
    shape(
        "haproxy/router/haproxy.config",
        "the router of a cluster: maps, TLS frontends behind one in TCP",
        &["http://cheese.example.org:80/"],
        "timeout_http_keep_alive: 10s",
    ),
    shape(
        "haproxy/router/haproxy.config",
        "the same, asked over TLS",
        &["https://cheese.example.org/"],
        "http_reuse: always",
    ),
    shape(
        "haproxy/controller/haproxy.cfg",
        "a controller's slots: maps, peers, statistics",
        &["http://eggs.example.org:80/"],
        "nbthread: 2",
    ),
    shape(
        "haproxy/passthrough.cfg",
        "TLS passed on by name",
        &["https://mail.example.org/"],
        "maxconn: 1000",
    ),
    shape(
        "haproxy/chained.cfg",
        "a frontend in TCP before one with TLS at an abstract socket",
        &["https://site.example.org/"],
        "http_reuse: always",
    ),
    shape(
        "haproxy/chained.cfg",
        "the same, asked for somebody else's TLS",
        &["https://vpn.example.org/"],
        "http_reuse: always",
    ),
    shape(
        "haproxy/databases.cfg",
        "a cluster of databases in TCP, statistics first",
        &["http://db.example.org:5000/"],
        "maxconn: 1000",
    ),
    shape(
        "haproxy/debian-tls.cfg",
        "Debian's defaults, ACME and a redirect in clear, TLS",
        &["https://printers.example.org/"],
        "ssl_session_tickets: on",
    ),
    shape(
        "haproxy/mutual-tls.cfg",
        "devices with certificates",
        &["https://hub.example.org/"],
        "maxconn: 2000",
    ),
    shape(
        "haproxy/conf.d",
        "a folder of files, a limit of each client's rate",
        &["http://plants.example.org/"],
        "compression: off",
    ),
    shape(
        "haproxy/discovery.cfg",
        "servers from a register of services (`server-template`)",
        &["http://api.example.org/"],
        "timeout_connect: 1s",
    ),
    shape(
        "haproxy/environment.cfg",
        "ports and servers from the environment",
        &["http://app.example.org:8110/"],
        "http_reuse: never",
    ),
    shape(
        "haproxy/container.cfg",
        "a container whose port nobody has set",
        &["http://app.example.org:8115/"],
        "http_reuse: never",
    ),
    shape(
        "haproxy/lua/haproxy.cfg",
        "a script that asks a server of its own",
        &["http://app.example.org/"],
        "nbthread: 1",
    ),
    shape(
        "haproxy/h2c.cfg",
        "HTTP/2 in clear on both sides",
        &["http://rpc.example.org:8131/"],
        "maxconn: 1000",
    ),
    shape(
        "haproxy/h2c.cfg",
        "the same, asked where HTTP/2 is all",
        &["http://rpc.example.org:8130/"],
        "maxconn: 1000",
    ),
    shape(
        "envoy/single.yaml",
        "an edge whose lists are single values",
        &["http://edge.example.org/"],
        "keepalive_timeout: 30s",
    ),
    shape(
        "envoy/front-proxy.yaml",
        "the front proxy of the examples, logs to the standard output",
        &["http://front.example.org/service/1"],
        "access_log: off",
    ),
    shape(
        "envoy/double-proxy.yaml",
        "a second proxy for bytes, certificates of clients",
        &["https://db.example.org/"],
        "per_connection_buffer_limit: 64k",
    ),
    shape(
        "envoy/grpc-bridge.yaml",
        "HTTP/1.1 made gRPC, HTTP/2 behind",
        &["http://kv.example.org/"],
        "max_requests: 2048",
    ),
    shape(
        "envoy/grpc-clear.yaml",
        "gRPC alone, in clear",
        &["http://rpc.example.org/"],
        "max_requests: 2048",
    ),
    shape(
        "envoy/files/envoy.yaml",
        "clusters from a file (CDS)",
        &["http://front.example.org/"],
        "stream_idle_timeout: 60s",
    ),
    shape(
        "envoy/edge.yaml",
        "the manual's advice for an edge, TLS by name",
        &["https://maps.example.org/"],
        "max_active_downstream_connections: 2000",
    ),
    shape(
        "envoy/redirect-first.yaml",
        "a redirect in clear, TLS, JSON logs of errors, shared anchors",
        &["https://trains.example.org/"],
        "tls_minimum_protocol_version: TLSv1_3",
    ),
    shape(
        "envoy/dump.json",
        "a dump in the spelling of protobuf",
        &["http://reviews.example.org/"],
        "max_requests: 4096",
    ),
    shape(
        "envoy/forward.yaml",
        "a forward proxy: clients name the server",
        &["http://any.example.org/"],
        "keepalive_requests: 100",
    ),
    shape(
        "envoy/websocket.yaml",
        "upgrades, compression of the longer answers",
        &["http://games.example.org/"],
        "gzip_comp_level: 6",
    ),
    shape(
        "envoy/statsd.yaml",
        "figures to a collector by UDP, in one line each",
        &["http://web.example.org/"],
        "keepalive_requests: 1000",
    ),
    shape(
        "caddy/reverse-proxy.caddyfile",
        "a site with a name and one with a port",
        &["http://weir.test:8080/"],
        "gogc: 400",
    ),
    shape(
        "caddy/php.caddyfile",
        "PHP-FPM",
        &["http://diary.example.org/"],
        "gogc: 400",
    ),
    shape(
        "caddy/wildcard.caddyfile",
        "a wildcard whose servers the DNS knows",
        &["https://billing.tenants.example.org/"],
        "gogc: 400",
    ),
    shape(
        "caddy/on-demand.caddyfile",
        "certificates on demand, if the application says so",
        &["https://anybody.example.org/"],
        "gogc: 400",
    ),
    shape(
        "caddy/spa/Caddyfile",
        "an application in the browser and its API, snippets, imports",
        &["http://shelf.example.org/api/books"],
        "gomaxprocs: 1",
    ),
    shape(
        "caddy/h2c.caddyfile",
        "HTTP/2 in clear behind",
        &["http://rpc.example.org/"],
        "gogc: 400",
    ),
    shape(
        "caddy/h2c-alone.caddyfile",
        "HTTP/2 in clear alone",
        &["http://rpc.example.org/"],
        "gogc: 400",
    ),
    shape(
        "caddy/mutual-tls.caddyfile",
        "sensors with certificates",
        &["https://sensors.example.org/"],
        "gogc: 400",
    ),
    shape(
        "caddy/api.json",
        "JSON with checks of health, logs over the network",
        &["http://api.example.org/"],
        "origin_keepalive: 128",
    ),
    shape(
        "caddy/adapted.json",
        "what `caddy adapt` prints, in one line",
        &["http://barns.example.org/"],
        "read_timeout: 5s",
    ),
    shape(
        "caddy/policies.json",
        "TLS by policies and files, a server for metrics",
        &["https://desk.example.org/"],
        "tls_protocol_min: tls1.3",
    ),
    shape(
        "caddy/dynamic.json",
        "origin servers from the DNS",
        &["http://web.example.org/"],
        "read_timeout: 5s",
    ),
    shape(
        "httpd/httpd.conf",
        "a virtual host before one server",
        &["http://books.example.org/"],
        "rlimit_nofile: 2048",
    ),
];
