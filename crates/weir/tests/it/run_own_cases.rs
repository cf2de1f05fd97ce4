//! Configurations as users of each proxy have them.

use std::path::Path;
use std::process::Command;

use weir_model::study::ProxyKind;

/// One proxy's part in the tests.
pub(crate) struct Case {
    pub(crate) kind: &'static str,
    /// What the study names: the first of the files, or the folder that they are in.
    pub(crate) main: &'static str,
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// A setting, and what the patch has of it.
    pub(crate) setting: (&'static str, &'static str),
    pub(crate) lines: &'static [&'static str],
    /// What accepts a configuration.
    pub(crate) check: fn(&Path) -> Command,
}

/// A proxy's program, where weir finds it.
fn installed(kind: ProxyKind) -> Command {
    let found = weir_sut::find(kind, None);
    let found = found.expect("these tests need all proxies: make setup-proxies");
    Command::new(found.program())
}

pub(crate) const NGINX: Case = Case {
    kind: "nginx",
    main: "main.conf",
    files: &[
        (
            "main.conf",
            "# The gateway of a shop.\nworker_processes 1;\npid nginx.pid;\nerror_log error.log;\n\
             events { worker_connections 512; }\nhttp {\n    access_log access.log;\n    \
             keepalive_timeout 30s; # clients are near\n    include sites/*.conf;\n}\n",
        ),
        (
            "sites/default.conf",
            "server {\n    listen 18080 default_server;\n    return 404;\n}\n",
        ),
        (
            "sites/shop.conf",
            "upstream app {\n    server 192.0.2.1:8080;\n    server 192.0.2.2:8080 backup;\n}\n\
             # The shop itself.\nserver {\n\tlisten 18080;\n\tserver_name shop.example;\n\
             \tlocation / {\n\t\tproxy_pass http://app;\n\t}\n}\n",
        ),
    ],
    setting: ("origin_keepalive", "16"),
    lines: &["+    keepalive 16;", "+\t\tproxy_http_version 1.1;"],
    check: |main| {
        let mut nginx = installed(ProxyKind::Nginx);
        nginx
            .arg("-t")
            .arg("-p")
            .arg(main.parent().expect("a folder"));
        nginx.arg("-c").arg(main);
        nginx
    },
};

pub(crate) const HAPROXY: Case = Case {
    kind: "haproxy",
    main: "haproxy.cfg",
    files: &[(
        "haproxy.cfg",
        "# The gateway of a shop.\nglobal\n    maxconn 1000\n    daemon\n\ndefaults\n    mode http\n    \
         timeout connect 5s # they are near\n    timeout client 30s\n    timeout server 30s\n\n\
         frontend web\n    bind :18080\n    http-request deny deny_status 404 unless { \
         req.hdr(host) -i shop.example }\n    default_backend app\n\nfrontend other\n    bind :18081\n    \
         default_backend app\n\nbackend app\n    server one 192.0.2.1:8080\n    server two \
         192.0.2.2:8080 backup\n",
    )],
    setting: ("http_reuse", "never"),
    lines: &["http-reuse never"],
    check: |main| {
        let mut haproxy = installed(ProxyKind::Haproxy);
        haproxy.arg("-c").arg("-f").arg(main);
        haproxy
    },
};

pub(crate) const HAPROXY_FOLDER: Case = Case {
    kind: "haproxy",
    main: "conf.d",
    files: &[
        ("conf.d/README", "Read in the order of their names.\n"),
        (
            "conf.d/10-defaults.cfg",
            "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n",
        ),
        (
            "conf.d/20-web.cfg",
            "frontend web\n    bind :18080\n    default_backend app\n",
        ),
        (
            "conf.d/30-app.cfg",
            "# The shop itself.\nbackend app\n    http-reuse safe\n    server one 192.0.2.1:8080\n",
        ),
    ],
    setting: ("http_reuse", "never"),
    lines: &[
        "conf.d/30-app.cfg",
        "-    http-reuse safe",
        "+    http-reuse never",
    ],
    check: |main| {
        let mut haproxy = installed(ProxyKind::Haproxy);
        haproxy.arg("-c").arg("-f").arg(main);
        haproxy
    },
};

pub(crate) const ENVOY: Case = Case {
    kind: "envoy",
    main: "envoy.yaml",
    files: &[(
        "envoy.yaml",
        "# The gateway of a shop.\nstatic_resources:\n  listeners:\n  - name: web\n    address:\n      \
         socket_address: {address: 0.0.0.0, port_value: 18080}\n    filter_chains:\n    - filters:\n      \
         - name: http\n        typed_config:\n          \"@type\": type.googleapis.com/envoy.extensions.\
         filters.network.http_connection_manager.v3.HttpConnectionManager\n          stat_prefix: web\n\
         \x20         http_filters:\n          - name: envoy.filters.http.router\n            \
         typed_config:\n              \"@type\": type.googleapis.com/envoy.extensions.filters.http.\
         router.v3.Router\n          route_config:\n            virtual_hosts:\n            - name: shop\n\
         \x20             domains: [shop.example]   # by name\n              routes:\n              \
         - match: {prefix: /}\n                route: {cluster: app}\n            - name: others\n\
         \x20             domains: [\"*\"]\n              routes:\n              - match: {prefix: /}\n\
         \x20               direct_response: {status: 404}\n  clusters:\n  - name: app\n    type: STATIC\n\
         \x20   load_assignment:\n      cluster_name: app\n      endpoints:\n      - lb_endpoints:\n\
         \x20       - endpoint:\n            address:\n              socket_address: {address: 192.0.2.1, \
         port_value: 8080}\n",
    )],
    setting: ("max_requests", "2048"),
    lines: &["+    circuit_breakers:", "2048"],
    check: |main| {
        let mut envoy = installed(ProxyKind::Envoy);
        envoy
            .args(["--mode", "validate", "--config-path"])
            .arg(main);
        envoy
    },
};

pub(crate) const CADDY: Case = Case {
    kind: "caddy",
    main: "caddy.json",
    files: &[(
        "caddy.json",
        "{\n  \"apps\": {\n    \"http\": {\n      \"servers\": {\n        \"web\": {\n          \
         \"listen\": [\":18080\"],\n          \"routes\": [\n            {\"match\": [{\"host\": \
         [\"shop.example\"]}], \"handle\": [{\"handler\": \"reverse_proxy\", \"upstreams\": [{\"dial\": \
         \"192.0.2.1:8080\"}]}]},\n            {\"handle\": [{\"handler\": \"static_response\", \
         \"status_code\": 404}]}\n          ]\n        }\n      }\n    }\n  }\n}\n",
    )],
    setting: ("origin_keepalive_timeout", "7s"),
    lines: &["idle_timeout", "max_idle_conns_per_host\": 32"],
    check: |main| {
        let mut caddy = installed(ProxyKind::Caddy);
        caddy.arg("validate").arg("--config").arg(main);
        caddy.env("HOME", main.parent().expect("a folder"));
        caddy
    },
};

/// Configurations whose only listener for the load has TLS: the proxy, the file's name and its text.
pub(crate) const SECURE: [(&str, &str, &str); 4] = [
    (
        "nginx",
        "nginx.conf",
        "events {}\nhttp {\n    server {\n        listen 18443 ssl;\n        ssl_certificate \
         /nowhere/shop.pem;\n        ssl_certificate_key /nowhere/shop.key;\n        location / { \
         proxy_pass http://192.0.2.1; }\n    }\n}\n",
    ),
    (
        "haproxy",
        "haproxy.cfg",
        "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server \
         30s\nfrontend web\n    bind :18443 ssl crt /nowhere/shop.pem strict-sni\n    \
         default_backend app\nbackend app\n    server one 192.0.2.1:8080\n",
    ),
    (
        "envoy",
        "envoy.json",
        r#"{"static_resources": {"listeners": [{"name": "web",
  "address": {"socket_address": {"address": "0.0.0.0", "port_value": 18443}},
  "listener_filters": [{"name": "tls", "typed_config": {"@type":
"type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}}],
  "filter_chains": [{
"filter_chain_match": {"server_names": ["shop.example"]},
"transport_socket": {"name": "tls", "typed_config": {
  "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
  "common_tls_context": {"tls_certificates": [{"certificate_chain": {"filename": "/nowhere/shop.pem"},
    "private_key": {"filename": "/nowhere/shop.key"}}]}}},
"filters": [{"name": "http", "typed_config": {
  "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
  "stat_prefix": "web",
  "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
  "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"],
    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "app"}}]}]}}}]}]}],
  "clusters": [{"name": "app", "type": "STATIC", "load_assignment": {"cluster_name": "app",
"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address":
  {"address": "192.0.2.1", "port_value": 8080}}}}]}]}}]}}
"#,
    ),
    (
        "caddy",
        "Caddyfile",
        "shop.example {\n    reverse_proxy 192.0.2.1:8080\n}\nhttp://plain.example {\n    \
         reverse_proxy 192.0.2.1:8080\n}\n",
    ),
];
