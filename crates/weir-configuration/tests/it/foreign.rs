//! No copy keeps what could ask or write something that is not its own: it is left out, replaced, or the
//! configuration is refused where it stands.

use std::path::Path;

use weir_configuration::document::{Format, adapt_caddy, adapt_envoy, read};
use weir_configuration::{ConfigurationError, Source, Surroundings, haproxy, nginx};

use crate::support::{of_a_test, source, text};

/// How a proxy's configuration is adapted.
type Adapt = fn(&Source, &Surroundings<'_>) -> Result<Source, ConfigurationError>;

fn of_nginx(source: &Source, to: &Surroundings<'_>) -> Result<Source, ConfigurationError> {
    nginx::adapt(source, to, "")
}

/// An nginx.conf with a line in its server.
fn in_server(line: &str) -> String {
    format!(
        "events {{ }}\nhttp {{\n    upstream app {{ server 192.0.2.1:80; }}\n    server {{\n        \
         listen 80;\n        {line}\n        location / {{ proxy_pass http://app; }}\n    }}\n}}\n"
    )
}

/// A haproxy.cfg with lines in its sections `global` and `backend`.
fn in_sections(global: &str, backend: &str) -> String {
    format!(
        "global\n    {global}\ndefaults\n    mode http\n    timeout connect 1s\nfrontend web\n    bind :80\n    \
         default_backend app\nbackend app\n    {backend}\n    server a 192.0.2.1:80\n"
    )
}

const TYPE: &str = "type.googleapis.com/envoy.extensions.filters";

/// A bootstrap with a line outside, one for its cluster, and one for an HTTP filter.
fn bootstrap(outside: &str, cluster: &str, filter: &str) -> String {
    format!(
        "{outside}\nstatic_resources:\n  listeners:\n    name: web\n    address: {{socket_address: {{address: \
         192.0.2.1, port_value: 80}}}}\n    filter_chains:\n      filters:\n        name: hcm\n        \
         typed_config:\n          \"@type\": {TYPE}.network.http_connection_manager.v3.HttpConnectionManager\n          \
         stat_prefix: web\n          http_filters:\n          - {filter}\n          - name: router\n            \
         typed_config: {{\"@type\": {TYPE}.http.router.v3.Router}}\n          route_config:\n            \
         virtual_hosts: {{name: all, domains: \"*\", routes: {{match: {{prefix: /}}, route: {{cluster: app}}}}}}\n  \
         clusters:\n    name: app\n    {cluster}\n    load_assignment:\n      cluster_name: app\n      endpoints:\n        \
         lb_endpoints:\n          endpoint: {{address: {{socket_address: {{address: 192.0.2.2, port_value: 80}}}}}}\n"
    )
}

/// Envoy's other lines, which do nothing.
const NONE: [&str; 3] = [
    "stats_flush_interval: 5s",
    "type: STATIC",
    "{name: cors, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors}}",
];

/// A Caddy document with an app, a handler and a writer of logs.
fn caddy(app: &str, handler: &str, writer: &str) -> String {
    format!(
        "{{\n\"logging\": {{\"logs\": {{\"default\": {{\"writer\": {writer}}}}}}},\n\"apps\": {{\n{app}\n\"http\": \
         {{\"servers\": {{\"a\": {{\"listen\": [\":80\"], \"routes\": [{{\"handle\": [\n{handler}\n]}}]}}}}}}}}}}\n"
    )
}

const REVERSE: &str = r#"{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}"#;
const STDERR: &str = r#"{"output": "stderr"}"#;

/// A configuration that is refused, with the line and the column of what is foreign, and its name.
struct Refused(Adapt, &'static str, String, usize, usize, &'static str);

fn refused_nginx() -> Vec<Refused> {
    let rows = [
        (
            "content_by_lua_block { ngx.say(1) }",
            "content_by_lua_block",
        ),
        ("access_by_lua_file a.lua;", "access_by_lua_file"),
        ("js_content main.hello;", "js_content"),
        ("perl 'sub { 1 }';", "perl"),
        (
            "modsecurity_rules_file /etc/modsecurity.conf;",
            "modsecurity_rules_file",
        ),
        (
            "otel_exporter { endpoint 192.0.2.9:4317; }",
            "otel_exporter",
        ),
        (
            "set_real_ip_from lb.example.com;",
            "set_real_ip_from lb.example.com",
        ),
        ("tunnel_pass;", "tunnel_pass"),
        ("frobnicate on;", "frobnicate"),
    ];
    let in_server =
        rows.map(|(line, name)| Refused(of_nginx, "nginx.conf", in_server(line), 6, 9, name));
    let balancer = "events { }\nhttp {\n    upstream app {\n        server 0.0.0.1;\n        \
                    balancer_by_lua_block { set() }\n    }\n    server { listen 80; }\n}\n";
    let balancer = Refused(
        of_nginx,
        "nginx.conf",
        balancer.to_owned(),
        5,
        9,
        "balancer_by_lua_block",
    );
    in_server.into_iter().chain([balancer]).collect()
}

fn refused_haproxy() -> Vec<Refused> {
    let of =
        |text, line, column, name| Refused(haproxy::adapt, "haproxy.cfg", text, line, column, name);
    let rows = [
        ("lua-load a.lua", 2, 5, "lua-load"),
        ("ssl-passphrase-cmd /bin/ask", 2, 5, "ssl-passphrase-cmd"),
        ("ocsp-update.mode on", 2, 5, "ocsp-update.mode"),
        ("shm-stats-file /run/stats", 2, 5, "shm-stats-file"),
        ("stats socket /run/a.sock colour red", 2, 30, "colour"),
    ];
    let globals =
        rows.map(|(line, at, column, name)| of(in_sections(line, "fullconn 9"), at, column, name));
    let rows = [
        ("filter spoe engine a config /etc/spoe.conf", 12, "spoe"),
        (
            "http-request do-resolve(txn.ip,dns) hdr(host)",
            18,
            "do-resolve",
        ),
        ("http-request lua.mine", 18, "lua.mine"),
        ("tcp-request content lua.mine", 25, "lua.mine"),
        ("option transparent", 12, "transparent"),
        ("option http_proxy", 12, "http_proxy"),
        ("frobnicate on", 5, "frobnicate"),
        ("server b 192.0.2.2:80 frobnicate", 27, "frobnicate"),
        (
            "server b 192.0.2.2:80 maxconn \"${MORE[*]}\"",
            35,
            "${MORE[*]}",
        ),
    ];
    let backends =
        rows.map(|(line, column, name)| of(in_sections("maxconn 9", line), 10, column, name));
    let section =
        in_sections("maxconn 9", "fullconn 9") + "acme le\n    directory https://192.0.2.9/\n";
    let unknown = [of(section, 12, 1, "acme")];
    globals.into_iter().chain(backends).chain(unknown).collect()
}

fn refused_envoy() -> Vec<Refused> {
    let of =
        |text, line, column, name| Refused(adapt_envoy, "envoy.yaml", text, line, column, name);
    let [outside, cluster, filter] = NONE;
    let outsides = [
        ("dynamic_resources: {cds_config: {path_config_source: {path: /etc/cds.yaml}}}", 1, "dynamic_resources"),
        ("layered_runtime: {layers: [{name: r, rtds_layer: {name: r}}]}", 38, "rtds_layer"),
        ("perf_tracing_file_path: /var/log/trace", 1, "perf_tracing_file_path"),
        ("watchdogs: {main_thread_watchdog: {actions: [{config: {name: p, typed_config: {\"@type\": \
          type.googleapis.com/envoy.extensions.watchdog.profile_action.v3.ProfileActionConfig}}}]}}", 80, "profile_action"),
    ]
    .map(|(line, column, name)| of(bootstrap(line, cluster, filter), 1, column, name));
    let clusters = [
        ("type: EDS", 5, "type"),
        ("type: ORIGINAL_DST", 5, "type"),
        ("type: 3", 5, "type"),
        ("eds_cluster_config: {eds_config: {ads: {}}}", 5, "eds_cluster_config"),
        ("cluster_type: {name: envoy.clusters.dynamic_forward_proxy, typed_config: {\"@type\": \
          type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig}}", 79, "dynamic_forward_proxy"),
        ("cluster_type: {name: envoy.clusters.redis}", 5, "cluster_type"),
        ("loadAssignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socketAddress: {address: \
          192.0.2.3, portValue: 80}}}}]}]}", 72, "socketAddress"),
    ]
    .map(|(line, column, name)| of(bootstrap(outside, line, filter), 20, column, name));
    let filters = [
        ("{name: lua, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua}}", 40, "lua.v3.Lua"),
        ("{name: e, config_discovery: {config_source: {ads: {}}}}", 23, "config_discovery"),
        ("{name: a, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz, \
          grpc_service: {google_grpc: {target_uri: \"192.0.2.9:80\", stat_prefix: a}}}}", 135, "google_grpc"),
    ]
    .map(|(line, column, name)| of(bootstrap(outside, cluster, line), 13, column, name));
    outsides
        .into_iter()
        .chain(clusters)
        .chain(filters)
        .collect()
}

fn refused_caddy() -> Vec<Refused> {
    let of =
        |text, line, column, name| Refused(adapt_caddy, "caddy.json", text, line, column, name);
    let apps = ["layer4", "events", "dynamic_dns"].map(|name| {
        let app = format!("\"{name}\": {{\"servers\": {{}}}},");
        of(caddy(&app, REVERSE, STDERR), 4, 1, name)
    });
    let handlers = [
        (r#"{"handler": "tracing", "span": "a"}"#, 2, "tracing"),
        (r#"{"handler": "acme_server"}"#, 2, "acme_server"),
        (r#"{"handler": "file_server", "file_system": {"backend": "s3"}}"#, 28, "file_system"),
        (r#"{"handler": "reverse_proxy", "Upstreams": [{"dial": "192.0.2.9:80"}]}"#, 30, "Upstreams"),
        (r#"{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80", "dial": "192.0.2.9:80"}]}"#, 69, "dial"),
        (r#"{"handler": "authentication", "providers": {"mine": {}}}"#, 45, "mine"),
        (r#"{"handler": "subroute", "routes": [{"match": [{"mine": {}}]}]}"#, 48, "mine"),
    ]
    .map(|(handler, column, name)| of(caddy("", handler, STDERR), 6, column, name));
    let writer = r#"{"output": "mine", "address": "192.0.2.9:514"}"#;
    let writers = [of(caddy("", REVERSE, writer), 2, 45, "mine")];
    apps.into_iter().chain(handlers).chain(writers).collect()
}

#[test]
fn what_could_ask_or_write_elsewhere_is_refused_where_it_stands() {
    let rows = [
        refused_nginx(),
        refused_haproxy(),
        refused_envoy(),
        refused_caddy(),
    ];
    for Refused(adapt, name, users, line, column, foreign) in rows.into_iter().flatten() {
        let refused = adapt(&source(name, &users), &of_a_test(Path::new("/p")));
        let error = refused
            .err()
            .unwrap_or_else(|| panic!("{foreign} is kept:\n{users}"));
        assert!(error.what.contains(foreign), "{foreign}: {error}");
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{error}\n{users}"
        );
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains("name a copy of your configuration"), "{hint}");
    }
}

/// A configuration of which all that is foreign is left out or replaced.
type Adapted = (Adapt, &'static str, String);

fn adapted_directives() -> Vec<Adapted> {
    let nginx = [
        "resolver 192.0.2.53;",
        "dav_methods PUT DELETE;",
        "ssl_stapling on; ssl_stapling_responder http://192.0.2.9/;",
        "ssl_ocsp on; ssl_ocsp_responder http://192.0.2.9/;",
        "ssl_key_log /var/log/keys; proxy_ssl_key_log /var/log/keys;",
        "access_log syslog:server=192.0.2.60 combined; error_log syslog:server=192.0.2.60;",
        "location /a { auth_request /b; } location /b { proxy_pass http://192.0.2.9; }",
        "location /a { mirror /b; } location /b { grpc_pass grpcs://192.0.2.9; }",
        "location ~ ^/(?<pool>[^/]+) { set $pool app; proxy_pass http://$pool; }",
        "location /a { auth_request_set $pool $upstream_http_x; set $pool app; proxy_pass http://$pool; }",
    ];
    let nginx = nginx.map(in_server);
    let mail =
        in_server("") + "mail { auth_http 192.0.2.9:9000; server { listen 25; protocol smtp; } }\n";
    let main = format!("working_directory /var/lib/nginx;\n{}", in_server(""));
    let nginx = nginx.into_iter().chain([mail, main]);
    nginx
        .map(|text| (of_nginx as Adapt, "nginx.conf", text))
        .collect()
}

fn adapted_statements() -> Vec<Adapted> {
    let haproxy = [
        "server-template s 3 _http._tcp.192.0.2.3 resolvers dns",
        "http-check connect addr 192.0.2.3 port 80 ssl",
        "tcp-check connect addr 192.0.2.3",
        "log 192.0.2.4:514 local0",
        "source 192.0.2.5",
        "email-alert mailers m",
        "server b 192.0.2.2:80 agent-check agent-addr 192.0.2.3 agent-port 9 socks4 192.0.2.3:1080",
        "server own 127.0.0.1:80 source 192.0.2.9 resolvers dns",
    ];
    let more = "resolvers dns\n    nameserver a 192.0.2.53:53\nmailers m\n    mailer a 192.0.2.25:25\n\
                ring r\n    size 32k\n    server a 192.0.2.6:514\nfcgi-app php\n    log-stderr 192.0.2.7 local0\n    \
                docroot /srv\nprogram p\n    command /bin/ask 192.0.2.8\n";
    let haproxy = haproxy.map(|line| {
        let text = in_sections("httpclient.resolvers.id dns", line) + more;
        (haproxy::adapt as Adapt, "haproxy.cfg", text)
    });
    haproxy.into()
}

fn adapted_documents() -> Vec<Adapted> {
    let [outside, cluster, filter] = NONE;
    let envoy = [
        bootstrap(
            "stats_sinks: [{name: s, typed_config: {\"@type\": type.googleapis.com/\
                   envoy.config.metrics.v3.StatsdSink, address: {socket_address: {address: 192.0.2.9, \
                   port_value: 8125}}}}]",
            cluster,
            filter,
        ),
        bootstrap(
            "typed_dns_resolver_config: {name: c, typed_config: {\"@type\": type.googleapis.com/\
                   envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, resolvers: \
                   [{socket_address: {address: 192.0.2.53, port_value: 53}}]}}",
            cluster,
            filter,
        ),
        bootstrap(
            "cluster_manager: {upstream_bind_config: {source_address: {address: 192.0.2.9, port_value: 0}}}",
            cluster,
            filter,
        ),
        bootstrap(
            outside,
            "upstream_bind_config: {source_address: {address: 192.0.2.9, port_value: 0}}",
            filter,
        ),
        bootstrap(
            outside,
            "cluster_type: {name: envoy.clusters.dns, typed_config: {\"@type\": \
                   type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster}}",
            filter,
        ),
        bootstrap(outside, "type: 1", filter),
    ];
    let envoy = envoy.map(|text| (adapt_envoy as Adapt, "envoy.yaml", text));
    let transport = r#"{"handler": "reverse_proxy", "upstreams": [], "dynamic_upstreams": {"source": "a",
        "name": "192.0.2.9"}, "transport": {"protocol": "http", "resolver": {"addresses": ["192.0.2.53"]},
        "local_address": "192.0.2.9", "forward_proxy_url": "http://192.0.2.9", "network_proxy": {"from": "url",
        "url": "http://192.0.2.9"}}}"#;
    let tls = r#""tls": {"automation": {"policies": [{"issuers": [{"module": "acme", "ca":
        "https://192.0.2.9/"}], "on_demand": true}]}, "certificates": {"automate": ["192.0.2.9"]}},"#;
    let writer = r#"{"output": "net", "address": "192.0.2.9:514"}"#;
    let caddy = [
        caddy("", transport, STDERR),
        caddy(tls, REVERSE, STDERR),
        caddy("", REVERSE, writer),
    ];
    let caddy = caddy.map(|text| (adapt_caddy as Adapt, "caddy.json", text));
    envoy.into_iter().chain(caddy).collect()
}

#[test]
fn all_that_is_foreign_is_left_out_or_replaced() {
    let all = [
        adapted_directives(),
        adapted_statements(),
        adapted_documents(),
    ];
    for (adapt, name, users) in all.into_iter().flatten() {
        let copy = adapt(&source(name, &users), &of_a_test(Path::new("/p")));
        let copy = copy.unwrap_or_else(|error| panic!("{error}\n{users}"));
        // Without it HAProxy would take the host's name servers.
        let own = "resolvers default\n    nameserver origin 127.0.0.1:7002\n";
        assert_eq!(text(&copy).contains(own), name == "haproxy.cfg", "{name}");
        let copied = text(&copy).replace(own, "");
        for foreign in [
            "192.0.2.",
            "resolver",
            "dav_methods",
            "ssl_stapling",
            "ssl_ocsp",
            "key_log",
            "working_",
            "auth_http",
            "$pool;",
            "DnsCluster",
            "type: 1",
            "\"acme\"",
        ] {
            assert!(!copied.contains(foreign), "{foreign}:\n{users}\n{copied}");
        }
    }
}

/// A single mapping stands for a list of one wherever Envoy has lists: the copy of either asks the same.
#[test]
fn a_single_mapping_is_a_list_of_one() {
    let [outside, cluster, filter] = NONE;
    let copy = adapt_envoy(
        &source("envoy.yaml", &bootstrap(outside, cluster, filter)),
        &of_a_test(Path::new("/p")),
    );
    let copy = copy.unwrap_or_else(|error| panic!("{error}"));
    for (address, count) in [("7001", 1), ("7002", 1), ("192.0.2.", 0)] {
        assert_eq!(
            text(&copy).matches(address).count(),
            count,
            "{}",
            text(&copy)
        );
    }
}

/// A list of certificates says itself whether their authorities are asked.
#[test]
fn a_list_of_certificates_that_are_looked_up_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("certificates");
    let text = format!(
        "defaults\n    mode http\nfrontend web\n    bind :80\n    bind :443 ssl crt-list {}\n    \
         default_backend app\nbackend app\n    server a 192.0.2.1:80\n",
        list.display()
    );
    for (content, is_refused) in [
        ("/etc/a.pem [ocsp-update on] *\n", true),
        ("/etc/a.pem *\n", false),
    ] {
        std::fs::write(&list, content).unwrap();
        let adapted = haproxy::adapt(&source("haproxy.cfg", &text), &of_a_test(Path::new("/p")));
        assert_eq!(adapted.is_err(), is_refused, "{content}");
    }
}

/// Of Envoy's documents each is read in either format.
#[test]
fn json_is_looked_through_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("envoy.json");
    let text = r#"{"staticResources": {"listeners": {"address": {"socketAddress": {"address": "::", "portValue": 80}}},
  "clusters": {"name": "a", "loadAssignment": {"namedEndpoints": {"b": {"address": {"pipe": {"path": "/run/b"}}}}}}}}"#;
    std::fs::write(&file, text).unwrap();
    let source = read(&file, Format::Json).unwrap();
    let error = adapt_envoy(&source, &of_a_test(Path::new("/p"))).unwrap_err();
    assert_eq!((error.line, error.column), (2, 85), "{error}");
    assert!(error.what.contains("`pipe`"), "{error}");
}
