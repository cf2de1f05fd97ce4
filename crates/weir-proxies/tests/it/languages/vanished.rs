//! Differences of two configurations that their copies do not have, found without any knowledge of a language.

use weir_caddy::language as caddy;
use weir_configuration::{Copied, Source, vanished};
use weir_envoy::language as envoy;
use weir_haproxy::language as haproxy;
use weir_nginx::language as nginx;

use crate::languages::support::{make_prefix, make_source, of_a_test};

const NGINX: &str = "\
events {}
http {
    upstream app { server 192.0.2.1; }
    server {
        listen 80;
        location / {
            # PART
            PART
            proxy_pass http://app;
        }
    }
}
";

const HAPROXY: &str = "\
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend web
    bind :80
    default_backend app
backend app
    PART
    server a 192.0.2.1:80
";

const ENVOY: &str = r#"
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app}}]}]
  clusters:
  - name: app
    PART
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 80}}}}]}]}
"#;

const CADDY: &str = r#"{"apps": {"http": {"servers": {"web": {"listen": [":80"], "routes": [{"handle": [
  {"handler": "reverse_proxy",
   PART
   "upstreams": [{"dial": "192.0.2.1:8080"}]}]}]}}}}}
"#;

/// Rows of language, configuration, the text in each of the two configurations, and the places where they differ and
/// the copies do not.
#[rustfmt::skip]
const ROWS: [(&str, &str, [&str; 2], &[&str]); 16] = [
    ("nginx", NGINX, ["gzip on;", "gzip on;"], &[]),
    ("nginx", NGINX, ["gzip on;", "gzip off;"], &[]),
    ("nginx", NGINX, ["", "proxy_buffering off;"], &[]),
    ("nginx", NGINX, ["", "proxy_bind 192.0.2.9;"], &["8 proxy_bind"]),
    ("nginx", NGINX, ["proxy_bind 192.0.2.9;", "gzip on;"], &["8 proxy_bind"]),
    ("nginx", NGINX, ["if ($a) { proxy_pass http://b; }", "if ($a) { proxy_pass https://b; }"], &["8 proxy_pass"]),
    ("nginx", NGINX, ["limit_except GET { deny all; }", "gzip on; proxy_bind 192.0.2.9;\n limit_except GET { deny all; }"], &["9 proxy_bind"]),
    ("haproxy", HAPROXY, ["", "http-reuse never"], &[]),
    ("haproxy", HAPROXY, ["server b 192.0.2.2:443 ssl verify none", "server b 192.0.2.2:80"], &["10 server"]),
    ("haproxy", HAPROXY, ["server b 192.0.2.2:80", "server b 192.0.2.2:80 socks4 192.0.2.3:1080"], &["10 server"]),
    ("envoy", ENVOY, ["connect_timeout: 1s", "connect_timeout: 2s"], &[]),
    ("envoy", ENVOY, ["", "upstream_bind_config: {freebind: true}"], &["18 upstream_bind_config"]),
    // Beside something that copies keep.
    ("envoy", ENVOY, ["", "upstream_bind_config: {freebind: true}\n    lb_policy: RANDOM"], &["18 upstream_bind_config"]),
    ("haproxy", HAPROXY, ["server b 192.0.2.2:80", "server b 192.0.2.2:80 weight 7 socks4 192.0.2.3:1080"], &["10 server"]),
    ("caddy", CADDY, ["", "\"flush_interval\": -1,"], &[]),
    ("caddy", CADDY, ["", "\"transport\": {\"protocol\": \"http\", \"tls\": {}},"], &["3 tls"]),
];

fn copy(language: &str, original: &Source) -> Source {
    let folder = make_prefix();
    let surroundings = of_a_test(folder.path());
    let copied = match language {
        "nginx" => nginx::adapt(original, &surroundings, ""),
        "haproxy" => haproxy::adapt(original, &surroundings),
        "envoy" => envoy::adapt(original, &surroundings),
        _ => caddy::adapt(original, &surroundings),
    };
    copied.unwrap()
}

#[test]
fn what_copies_do_not_have_is_found_by_itself() {
    for (language, text, parts, expected) in ROWS {
        println!("{language} {parts:?}");
        let both = parts.map(|part| make_source("configuration", &text.replace("PART", part)));
        let copies = [0, 1].map(|one| copy(language, &both[one]));
        let copied = [0, 1].map(|one| Copied::of(&both[one], &copies[one]));
        let spots = vanished(&copied[0], &copied[1]);
        let lines = spots.iter().map(|spot| format!("{} {}", spot.line, spot.name));
        assert_eq!(lines.collect::<Vec<_>>(), *expected);
    }
}
