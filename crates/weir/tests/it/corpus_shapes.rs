//! What of `tests/data/corpus` is taken all the way, and how: one row for each shape.

use crate::corpus_nginx::NGINX;

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

pub(crate) const fn shape(
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

/// All of them, in the order of the table.
pub(crate) fn shapes() -> impl Iterator<Item = &'static Shape> {
    NGINX.iter().chain(OTHERS)
}

/// What a balancer before the proxy says.
pub(crate) const FORWARDED: &str = ", X-Forwarded-Proto: https";

const OTHERS: &[Shape] = &[
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
        "haproxy/expectations.cfg",
        "checks that expect words of the servers",
        &["http://well.example.org/"],
        "http_reuse: always",
    ),
    shape(
        "haproxy/managed/haproxy.cfg",
        "made by a controller: several `defaults`, a program, peers",
        &["http://api.example.org:8080/v1/pets"],
        "timeout_server: 40s",
    ),
    shape(
        "haproxy/ports.cfg",
        "many ports, told apart by a condition",
        &["http://third.example.org:8143/"],
        "maxconn: 1500",
    ),
    shape(
        "haproxy/forwarded.cfg",
        "behind a balancer of a cloud: nothing without its header",
        &["http://shelf.example.org/"],
        "maxconn: 1500",
    ),
    Shape {
        fields: FORWARDED,
        ..shape(
            "haproxy/forwarded.cfg",
            "the same, with the header",
            &["http://shelf.example.org/"],
            "maxconn: 1500",
        )
    },
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
        "envoy/generated.yaml",
        "a gateway's routes: headers, and shares of 100 %",
        &["http://quote.example.org/backend/"],
        "keepalive_timeout: 45s",
    ),
    shape(
        "envoy/headers.yaml",
        "routes by headers, two clusters by weight, one of them mirrored",
        &["http://beta.example.org/"],
        "keepalive_requests: 500",
    ),
    shape(
        "envoy/mesh.yaml",
        "a sidecar: filter chains by port and network",
        &["http://mesh.example.org/"],
        "keepalive_timeout: 45s",
    ),
    shape(
        "envoy/authorized.yaml",
        "who asks is asked for before, by gRPC (`ext_authz`)",
        &["http://door.example.org/"],
        "keepalive_timeout: 45s",
    ),
    shape(
        "envoy/checked.yaml",
        "checks of another protocol, and no panic",
        &["http://well.example.org/"],
        "keepalive_timeout: 45s",
    ),
    shape(
        "envoy/ingress/envoy.yaml",
        "a controller's listeners: TLS by name beside bytes, keys from a file (SDS)",
        &["https://fishing.example.org/"],
        "max_requests: 4096",
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
        "caddy/odd-port.json",
        "automatic HTTPS at another port",
        &["https://ham.example.org:8443/"],
        "read_timeout: 5s",
    ),
    shape(
        "caddy/healthy.caddyfile",
        "checks that expect a word of the servers",
        &["http://well.example.org/"],
        "gogc: 200",
    ),
    shape(
        "httpd/httpd.conf",
        "a virtual host before one server",
        &["http://books.example.org/"],
        "rlimit_nofile: 2048",
    ),
];
