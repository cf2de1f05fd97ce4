//! No copy keeps a part that could contact or write something foreign: the part is left out or replaced, or the
//! configuration is refused at its place.

use std::path::Path;

use weir_caddy::language as caddy;
use weir_configuration::document::{Format, read};
use weir_configuration::{ConfigurationError, Source, Surroundings};
use weir_envoy::language as envoy;
use weir_haproxy::language as haproxy;
use weir_nginx::language as nginx;

use crate::languages::support::{make_source, of_a_test, text};

type Adapt = fn(&Source, &Surroundings<'_>) -> Result<Source, ConfigurationError>;

fn of_nginx(source: &Source, to: &Surroundings<'_>) -> Result<Source, ConfigurationError> {
    nginx::adapt(source, to, "")
}

const NGINX: &str = "\
<MAIN>
events { }
http {
    upstream app {
        server 192.0.2.1:80;
        <UPSTREAM>
    }
    server {
        listen 80;
        <SERVER>
        location / { proxy_pass http://app; }
    }
}
";

const HAPROXY: &str = "\
global
    <GLOBAL>
defaults
    mode http
    timeout connect 1s
frontend web
    bind :80
    default_backend app
backend app
    <BACKEND>
    server a 192.0.2.1:80
<SECTIONS>
";

/// Sections that a copy does not have.
const SECTIONS: &str = "\
resolvers dns
    nameserver a 192.0.2.53:53
mailers m
    mailer a 192.0.2.25:25
ring r
    size 32k
    server a 192.0.2.6:514
fcgi-app php
    log-stderr 192.0.2.7 local0
    docroot /srv
program p
    command /bin/ask 192.0.2.8";

const ENVOY: &str = r#"<OUTSIDE>
static_resources:
  listeners:
    name: web
    address: {socket_address: {address: 192.0.2.1, port_value: 80}}
    filter_chains:
      filters:
        name: hcm
        typed_config:
          "@type": TYPE.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          http_filters:
          - <FILTER>
          - name: router
            typed_config: {"@type": TYPE.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts: {name: all, domains: "*", routes: {match: {prefix: /}, route: {cluster: app}}}
  clusters:
    name: app
    <CLUSTER>
    load_assignment:
      cluster_name: app
      endpoints:
        lb_endpoints:
          endpoint: {address: {socket_address: {address: 192.0.2.2, port_value: 80}}}
"#;

/// A filter that does nothing.
const CORS: &str =
    r#"{name: cors, typed_config: {"@type": TYPE.extensions.filters.http.cors.v3.Cors}}"#;

const CADDY: &str = r#"{
"logging": {"logs": {"default": {"writer": <WRITER>}}},
"apps": {
<APP>
"http": {"servers": {"a": {"listen": [":80"], "routes": [{"handle": [
<HANDLER>
]}]}}}}}
"#;

const REVERSE: &str = r#"{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}"#;

/// Returns a configuration with a text in one of its slots, named as in `nginx <SERVER>`, and default texts in the
/// others.
fn with(place: &str, own: &str) -> (Adapt, &'static str, String) {
    #[rustfmt::skip]
    let (adapt, file, text, usual): (Adapt, _, _, &[(&str, &str)]) = match place.split(' ').next() {
        Some("nginx") => (of_nginx, "nginx.conf", NGINX,
            &[("<MAIN>", ""), ("<UPSTREAM>", ""), ("<SERVER>", "")]),
        Some("haproxy") => (haproxy::adapt, "haproxy.cfg", HAPROXY,
            &[("<GLOBAL>", "httpclient.resolvers.id dns"), ("<BACKEND>", "fullconn 9"), ("<SECTIONS>", SECTIONS)]),
        Some("envoy") => (envoy::adapt, "envoy.yaml", ENVOY,
            &[("<OUTSIDE>", "stats_flush_interval: 5s"), ("<CLUSTER>", "type: STATIC"), ("<FILTER>", CORS)]),
        _ => (caddy::adapt, "caddy.json", CADDY,
            &[("<APP>", ""), ("<HANDLER>", REVERSE), ("<WRITER>", r#"{"output": "stderr"}"#)]),
    };
    let (_, slot) = place.split_once(' ').expect(place);
    assert!(text.contains(slot), "{place}");
    let placed = text.replace(slot, &own.replace("\\n", "\n"));
    let text = usual.iter().fold(placed, |text, (slot, usual)| text.replace(slot, usual));
    (adapt, file, text.replace("TYPE", "type.googleapis.com/envoy"))
}

/// Returns the rows of a table with columns separated by ` | `.
fn list_rows<const N: usize>(table: &str) -> impl Iterator<Item = [&str; N]> {
    table.lines().skip(1).map(|row| {
        let columns: Vec<&str> = row.split(" | ").collect();
        columns.try_into().expect(row)
    })
}

/// Refused texts, with `»` before the place of the error, and the name in the error.
const REFUSED: &str = r#"
nginx <SERVER> | »content_by_lua_block { ngx.say(1) } | content_by_lua_block
nginx <SERVER> | »access_by_lua_file a.lua; | access_by_lua_file
nginx <SERVER> | »js_content main.hello; | js_content
nginx <SERVER> | »perl 'sub { 1 }'; | perl
nginx <SERVER> | »modsecurity_rules_file /etc/modsecurity.conf; | modsecurity_rules_file
nginx <SERVER> | »otel_exporter { endpoint 192.0.2.9:4317; } | otel_exporter
nginx <SERVER> | »set_real_ip_from lb.example.com; | set_real_ip_from lb.example.com
nginx <SERVER> | »tunnel_pass; | tunnel_pass
nginx <SERVER> | »frobnicate on; | frobnicate
nginx <UPSTREAM> | »balancer_by_lua_block { set() } | balancer_by_lua_block
nginx <SERVER> | location /s { proxy_pass http://app; } } »upstream unix:/run/a.sock { server 192.0.2.1:80; } server { | upstream unix:/run/a.sock
nginx <SERVER> | location /s { proxy_pass http://app; } } »upstream 192.0.2.9:80 { server 192.0.2.1:80; } server { | upstream 192.0.2.9:80
nginx <MAIN> | »load_module a/../../b.so; | load_module
haproxy <GLOBAL> | stats »"${WORD}" /run/a.sock level admin | stats
haproxy <BACKEND> | »default log 192.0.2.4:514 local0 | default
haproxy <GLOBAL> | »lua-load a.lua | lua-load
haproxy <GLOBAL> | »ssl-passphrase-cmd /bin/ask | ssl-passphrase-cmd
haproxy <GLOBAL> | »ocsp-update.mode on | ocsp-update.mode
haproxy <GLOBAL> | »shm-stats-file /run/stats | shm-stats-file
haproxy <GLOBAL> | stats socket /run/a.sock »colour red | colour
haproxy <BACKEND> | filter »spoe engine a config /etc/spoe.conf | spoe
haproxy <BACKEND> | http-request »do-resolve(txn.ip,dns) hdr(host) | do-resolve
haproxy <BACKEND> | http-request »lua.mine | lua.mine
haproxy <BACKEND> | tcp-request content »lua.mine | lua.mine
haproxy <BACKEND> | option »transparent | transparent
haproxy <BACKEND> | option »http_proxy | http_proxy
haproxy <BACKEND> | »frobnicate on | frobnicate
haproxy <BACKEND> | server b 192.0.2.2:80 »frobnicate | frobnicate
haproxy <BACKEND> | server b 192.0.2.2:80 maxconn »"${MORE[*]}" | ${MORE[*]}
haproxy <SECTIONS> | »acme le\n    directory https://192.0.2.9/ | acme
envoy <OUTSIDE> | »dynamic_resources: {cds_config: {path_config_source: {path: /etc/cds.yaml}}} | dynamic_resources
envoy <OUTSIDE> | layered_runtime: {layers: [{name: r, »rtds_layer: {name: r}}]} | rtds_layer
envoy <OUTSIDE> | admin: {access_log_path: /run/a.log, »accessLogPath: /run/b.log} | accessLogPath
envoy <OUTSIDE> | »perf_tracing_file_path: /var/log/trace | perf_tracing_file_path
envoy <OUTSIDE> | watchdogs: {main_thread_watchdog: {actions: [{config: {name: p, typed_config: {»"@type": TYPE.extensions.watchdog.profile_action.v3.ProfileActionConfig}}}]}} | profile_action
envoy <CLUSTER> | »type: EDS | type
envoy <CLUSTER> | »type: ORIGINAL_DST | type
envoy <CLUSTER> | »type: 3 | type
envoy <CLUSTER> | »eds_cluster_config: {eds_config: {ads: {}}} | eds_cluster_config
envoy <CLUSTER> | cluster_type: {name: envoy.clusters.dynamic_forward_proxy, typed_config: {»"@type": TYPE.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig}} | dynamic_forward_proxy
envoy <CLUSTER> | »cluster_type: {name: envoy.clusters.redis} | cluster_type
envoy <CLUSTER> | loadAssignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {»socketAddress: {address: 192.0.2.3, portValue: 80}}}}]}]} | socketAddress
envoy <FILTER> | {name: lua, typed_config: {»"@type": TYPE.extensions.filters.http.lua.v3.Lua}} | lua.v3.Lua
envoy <FILTER> | {name: p, typed_config: {»"@type": TYPE.extensions.filters.http.ext_proc.v3.ExternalProcessor}} | does not speak its protocol
envoy <FILTER> | {name: e, »config_discovery: {config_source: {ads: {}}}} | config_discovery
envoy <FILTER> | {name: a, typed_config: {"@type": TYPE.extensions.filters.http.ext_authz.v3.ExtAuthz, grpc_service: {»google_grpc: {target_uri: "192.0.2.9:80", stat_prefix: a}}}} | google_grpc
caddy <APP> | "pki": {"certificate_authorities": {"local": {"install_trust": false, »"install_trust": true}}}, | install_trust
caddy <APP> | "pki": {"certificate_authorities": {"local": {»"inſtall_truſt": true}}}, | inſtall_truſt
caddy <APP> | »"layer4": {"servers": {}}, | layer4
caddy <APP> | »"events": {"servers": {}}, | events
caddy <APP> | »"dynamic_dns": {"servers": {}}, | dynamic_dns
caddy <HANDLER> | {»"handler": "tracing", "span": "a"} | tracing
caddy <HANDLER> | {»"handler": "acme_server"} | acme_server
caddy <HANDLER> | {"handler": "file_server", »"file_system": {"backend": "s3"}} | file_system
caddy <HANDLER> | {"handler": "reverse_proxy", »"Upstreams": [{"dial": "192.0.2.9:80"}]} | Upstreams
caddy <HANDLER> | {"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80", »"dial": "192.0.2.9:80"}]} | dial
caddy <HANDLER> | {"handler": "authentication", "providers": {»"mine": {}}} | mine
caddy <HANDLER> | {"handler": "subroute", "routes": [{"match": [{»"mine": {}}]}]} | mine
caddy <WRITER> | {»"output": "mine", "address": "192.0.2.9:514"} | mine
"#;

#[test]
fn what_could_ask_or_write_elsewhere_is_refused_where_it_stands() {
    for [place, own, foreign] in list_rows(REFUSED) {
        let (adapt, file, users) = with(place, own);
        let (before, behind) = users.split_once('»').expect(own);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let users = format!("{before}{behind}");
        let refused = adapt(&make_source(file, &users), &of_a_test(Path::new("/p")));
        let error = refused.err().unwrap_or_else(|| panic!("{foreign} is kept:\n{users}"));
        assert!(error.what.contains(foreign), "{foreign}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{error}\n{users}");
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains("name a copy of your configuration"), "{hint}");
    }
}

/// Texts that are left out or replaced.
const REPLACED: &str = r#"
nginx <SERVER> | resolver 192.0.2.53;
nginx <SERVER> | dav_methods PUT DELETE;
nginx <SERVER> | ssl_stapling on; ssl_stapling_responder http://192.0.2.9/;
nginx <SERVER> | ssl_ocsp on; ssl_ocsp_responder http://192.0.2.9/;
nginx <SERVER> | ssl_key_log /var/log/keys; proxy_ssl_key_log /var/log/keys;
nginx <SERVER> | access_log syslog:server=192.0.2.60 combined; error_log syslog:server=192.0.2.60;
nginx <SERVER> | location /a { auth_request /b; } location /b { proxy_pass http://192.0.2.9; }
nginx <SERVER> | location /a { mirror /b; } location /b { grpc_pass grpcs://192.0.2.9; }
nginx <SERVER> | location ~ ^/(?<pool>[^/]+) { set $pool app; proxy_pass http://$pool; }
nginx <SERVER> | location /a { auth_request_set $pool $upstream_http_x; set $pool app; proxy_pass http://$pool; }
nginx <MAIN> | mail { auth_http 192.0.2.9:9000; server { listen 25; protocol smtp; } }
nginx <MAIN> | working_directory /var/lib/nginx;
haproxy <BACKEND> | server-template s 3 _http._tcp.192.0.2.3 resolvers dns
haproxy <BACKEND> | http-check connect addr 192.0.2.3 port 80 ssl
haproxy <BACKEND> | tcp-check connect addr 192.0.2.3
haproxy <BACKEND> | log 192.0.2.4:514 local0
haproxy <BACKEND> | source 192.0.2.5
haproxy <BACKEND> | email-alert mailers m
haproxy <BACKEND> | server b 192.0.2.2:80 agent-check agent-addr 192.0.2.3 agent-port 9 socks4 192.0.2.3:1080
haproxy <BACKEND> | server own 127.0.0.1:80 source 192.0.2.9 resolvers dns
envoy <OUTSIDE> | stats_sinks: [{name: s, typed_config: {"@type": TYPE.config.metrics.v3.StatsdSink, address: {socket_address: {address: 192.0.2.9, port_value: 8125}}}}]
envoy <OUTSIDE> | typed_dns_resolver_config: {name: c, typed_config: {"@type": TYPE.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, resolvers: [{socket_address: {address: 192.0.2.53, port_value: 53}}]}}
envoy <OUTSIDE> | cluster_manager: {upstream_bind_config: {source_address: {address: 192.0.2.9, port_value: 0}}}
envoy <CLUSTER> | upstream_bind_config: {source_address: {address: 192.0.2.9, port_value: 0}}
envoy <CLUSTER> | cluster_type: {name: envoy.clusters.dns, typed_config: {"@type": TYPE.extensions.clusters.dns.v3.DnsCluster}}
envoy <CLUSTER> | type: 1
caddy <HANDLER> | {"handler": "reverse_proxy", "upstreams": [], "dynamic_upstreams": {"source": "a", "name": "192.0.2.9"}, "transport": {"protocol": "http", "resolver": {"addresses": ["192.0.2.53"]}, "local_address": "192.0.2.9", "forward_proxy_url": "http://192.0.2.9", "network_proxy": {"from": "url", "url": "http://192.0.2.9"}}}
caddy <APP> | "tls": {"automation": {"policies": [{"issuers": [{"module": "acme", "ca": "https://192.0.2.9/"}], "on_demand": true}]}, "certificates": {"automate": ["192.0.2.9"]}},
caddy <WRITER> | {"output": "net", "address": "192.0.2.9:514"}
"#;

#[test]
fn all_that_is_foreign_is_left_out_or_replaced() {
    #[rustfmt::skip]
    let words = [
        "192.0.2.", "resolver", "dav_methods", "ssl_stapling", "ssl_ocsp", "key_log", "working_", "auth_http",
        "$pool;", "DnsCluster", "type: 1", "\"acme\"",
    ];
    for [place, own] in list_rows(REPLACED) {
        let (adapt, file, users) = with(place, own);
        let copy = adapt(&make_source(file, &users), &of_a_test(Path::new("/p")))
            .unwrap_or_else(|error| panic!("{error}\n{users}"));
        // Without it HAProxy would take the host's name servers.
        let resolvers = "resolvers default\n    nameserver origin 127.0.0.1:7002\n";
        assert_eq!(text(&copy).contains(resolvers), file == "haproxy.cfg", "{file}");
        let copied = text(&copy).replace(resolvers, "");
        for foreign in words {
            assert!(!copied.contains(foreign), "{foreign}:\n{users}\n{copied}");
        }
    }
}

/// Envoy accepts a single mapping in place of a list of one; the copies of both ask the same servers.
#[test]
fn a_single_mapping_is_a_list_of_one() {
    let (adapt, file, users) = with("envoy <CLUSTER>", "type: STATIC");
    let copy = adapt(&make_source(file, &users), &of_a_test(Path::new("/p")))
        .unwrap_or_else(|error| panic!("{error}"));
    for (address, count) in [("7001", 1), ("7002", 1), ("192.0.2.", 0)] {
        let copy = text(&copy);
        assert_eq!(copy.matches(address).count(), count, "{copy}");
    }
}

/// The list itself sets whether the authorities of its certificates are contacted.
#[test]
fn a_list_of_certificates_that_are_looked_up_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("certificates");
    let text = format!(
        "defaults\n    mode http\nfrontend web\n    bind :80\n    bind :443 ssl crt-list {}\n    \
         default_backend app\nbackend app\n    server a 192.0.2.1:80\n",
        list.display()
    );
    for (content, is_refused) in
        [("/etc/a.pem [ocsp-update on] *\n", true), ("/etc/a.pem *\n", false)]
    {
        std::fs::write(&list, content).unwrap();
        let adapted =
            haproxy::adapt(&make_source("haproxy.cfg", &text), &of_a_test(Path::new("/p")));
        assert_eq!(adapted.is_err(), is_refused, "{content}");
    }
}

#[test]
fn json_is_looked_through_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("envoy.json");
    let text = r#"{"staticResources": {"listeners": {"address": {"socketAddress": {"address": "::", "portValue": 80}}},
  "clusters": {"name": "a", "loadAssignment": {"namedEndpoints": {"b": {"address": {"pipe": {"path": "/run/b"}}}}}}}}"#;
    std::fs::write(&file, text).unwrap();
    let source = read(&file, Format::Json).unwrap();
    let error = envoy::adapt(&source, &of_a_test(Path::new("/p"))).unwrap_err();
    assert_eq!((error.line, error.column), (2, 85), "{error}");
    assert!(error.what.contains("`pipe`"), "{error}");
}
