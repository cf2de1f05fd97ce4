//! The configurations of nginx in `tests/data/corpus`.

use crate::corpus_shapes::{FORWARDED, Shape, shape};

pub(crate) const NGINX: &[Shape] = &[
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
        "nginx/front-controller.conf",
        "a framework of PHP: one program answers what is no file",
        &["http://orchard.example.org/"],
        "gzip: on",
    ),
    shape(
        "nginx/rewritten.conf",
        "an older application of PHP: `rewrite` in a named location",
        &["http://museum.example.org/"],
        "sendfile: on",
    ),
    shape(
        "nginx/panel/nginx.conf",
        "a panel's sites: looking ahead in a redirect, a default server beside",
        &["https://choir.example.org/", "http://choir.example.org/up"],
        "keepalive_requests: 500",
    ),
    shape(
        "nginx/behind-tls.conf",
        "a panel before another web server: TLS on both sides",
        &["https://florist.example.org/"],
        "origin_keepalive: 16",
    ),
    Shape {
        fields: FORWARDED,
        ..shape(
            "nginx/load-balancer.conf",
            "behind a balancer of a cloud: its header decides",
            &["http://tide.example.org/"],
            "keepalive_requests: 500",
        )
    },
    shape(
        "nginx/node.conf",
        "an application with WebSockets: `Connection` is always `upgrade`",
        &["http://chess.example.org/"],
        "origin_keepalive: 32",
    ),
    shape(
        "nginx/memcached.conf",
        "pages from memcached, an application behind it",
        &["http://press.example.org/"],
        "keepalive_requests: 200",
    ),
    shape(
        "nginx/mutual-tls.conf",
        "partners with certificates",
        &["https://partners.example.org/"],
        "ssl_session_cache: 1m",
    ),
];
