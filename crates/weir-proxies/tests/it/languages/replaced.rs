//! Copies report the parts on the way of a load's requests that they replace.

use weir_caddy::language as caddy;
use weir_caddy::language::CaddyJson;
use weir_configuration::document;
use weir_configuration::{ConfigurationError, PemLocation, ShownCertificate};
use weir_envoy::language as envoy;
use weir_envoy::language::Bootstrap;
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;
use weir_nginx::language as nginx;

use crate::languages::asked::ask;
use crate::languages::support::{make_prefix, make_source, of_a_test, text};

pub(crate) type Find<'a> = &'a dyn Fn(&AskSpec) -> Result<Vec<ReplacedRecord>, ConfigurationError>;

/// Compares replacements with a table by load: `/path => part line name; part line name`.
#[track_caller]
pub(crate) fn must_be(find: Find<'_>, table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (asked, expected) = line.split_once("=>").expect(line);
        let records = find(&ask(asked)).unwrap();
        let shown = records.iter().map(|it| {
            let part = serde_json::to_value(it.part).unwrap();
            let (line, name) = (it.original.line, &it.original.name);
            format!("{} {line} {name}", part.as_str().unwrap())
        });
        assert_eq!(shown.collect::<Vec<_>>().join("; "), expected.trim(), "{asked}");
    }
}

const NGINX: &str = "\
events { }
http {
    proxy_ssl_session_reuse off;
    limit_req_zone $binary_remote_addr zone=one:1m rate=10r/s;
    upstream many { server 192.0.2.1:80; server 192.0.2.2:80; server 192.0.2.3:80 down; }
    upstream path { ip_hash; server unix:/run/app.sock; }
    upstream inner { server 127.0.0.1:81; }
    gzip on;
    server {
        listen 80;
        location / { proxy_pass http://192.0.2.1; }
        location /tls/ { proxy_ssl_session_reuse on; proxy_pass https://many; }
        location /tls/off/ { proxy_ssl_verify on; proxy_pass https://192.0.2.1; }
        location /path/ { proxy_pass http://path; }
        location /name/ { set $to app.example; proxy_pass http://$to; }
        location /auth/ { auth_request /login; allow 192.0.2.0/24; deny all; proxy_pass http://192.0.2.1; }
        location /limit/ { limit_req zone=one; proxy_pass http://192.0.2.1; }
        location /text/ { sub_filter a b; proxy_cache off; proxy_pass http://192.0.2.1; }
        location /inner/ { proxy_pass http://inner; }
        location /again/ { proxy_pass http://localhost:81/tls/; }
        location /deep/ { proxy_pass http://localhost:81/again/; }
    }
    server {
        listen 81;
        location / { proxy_pass http://192.0.2.1; }
        location /again/ { proxy_pass https://192.0.2.1; }
    }
    server { listen 82 proxy_protocol; location / { return 204; } }
}
";

#[test]
fn nginx_by_what_a_location_has_in_force() {
    let configuration = make_source("nginx.conf", NGINX);
    must_be(
        &|ask| nginx::replaced(&configuration, ask, ""),
        "
        :80 => 
        :80 Accept-Encoding=gzip => content 8 gzip on
        :80 /tls/ => origin_tls 12 proxy_pass https://; servers 5 2 servers
        :80 /tls/off/ => origin_tls 3 proxy_ssl_session_reuse off; origin_tls 13 proxy_pass https://; origin_tls 13 proxy_ssl_verify on
        :80 /path/ => servers 6 server unix:; client_address 6 ip_hash
        :80 /name/ => names 15 proxy_pass http://$to
        :80 /auth/ => service 16 auth_request /login; client_address 16 allow 192.0.2.0/24
        :80 /limit/ => limit 17 limit_req zone=one; client_address 4 limit_req_zone $binary_remote_addr zone=one:1m rate=10r/s
        :80 /text/ => content 18 sub_filter a b
        :80 /inner/ => own_listener 7 its own listener
        :80 /again/ => own_listener 20 its own listener
        :80 /deep/ => origin_tls 3 proxy_ssl_session_reuse off; origin_tls 26 proxy_pass https://; own_listener 21 its own listener
        :82 => proxy_protocol 28 listen … proxy_protocol
        ",
    );
}

#[test]
fn nginx_s_own_listeners_are_asked_as_before() {
    let folder = make_prefix();
    let configuration = make_source("nginx.conf", NGINX);
    let copy = nginx::adapt(&configuration, &of_a_test(folder.path()), "").unwrap();
    let inner = format!("unix:{}/run/1.sock", folder.path().display());
    for expected in [
        format!("upstream inner {{ server {inner}; }}"),
        "location /inner/ { proxy_pass http://inner; }".to_owned(),
        format!("location /again/ {{ proxy_pass http://{inner}:/tls/; }}"),
        format!("listen {inner};"),
    ] {
        assert!(text(&copy).contains(&expected), "{expected}: {}", text(&copy));
    }
}

/// Returns the line and path of each certificate.
pub(crate) fn paths(shown: &[ShownCertificate]) -> Vec<String> {
    shown
        .iter()
        .map(|one| match &one.pem {
            PemLocation::At(path) => format!("{} {}", one.spot.line, path.display()),
            other => format!("{} {other:?}", one.spot.line),
        })
        .collect()
}

const ENVOY: &str = r#"
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificates:
            - certificate_chain: {filename: site.pem}
              private_key: {filename: site.key}
            - certificate_chain: {inline_string: "-----BEGIN"}
      filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          http_filters:
          - name: limit
            typed_config:
              {"@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit,
              token_bucket: {max_tokens: 9}, filter_enabled: &on {default_value: {numerator: 100}}, filter_enforced: *on}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /many}
                route: {cluster: many}
              - match: {prefix: /inner}
                route: {cluster: inner}
              - match: {prefix: /}
                route: {weighted_clusters: {clusters: [{name: one, weight: 1}]}}
  - address: {socket_address: {address: 127.0.0.1, port_value: 81}}
    filter_chains: []
  clusters:
  - name: one
    transport_socket: {name: envoy.transport_sockets.tls}
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}}]}]}
  - name: many
    load_assignment:
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 80}}}
        - endpoint: {address: {pipe: {path: /run/app.sock}}}
  - name: inner
    transport_socket: {name: envoy.transport_sockets.tls}
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: localhost, port_value: 81}}}}]}]}
"#;

#[test]
fn envoy_by_filters_and_cluster() {
    let configuration = make_source("envoy.yaml", ENVOY);
    must_be(
        &|ask| document::replaced(&configuration, &Bootstrap, ask),
        r#"
        tls => origin_tls 39 transport_socket {"name":"envoy.transport_sockets.tls"}; limit 22 LocalRateLimit
        tls /many => servers 41 2 endpoints; servers 46 pipe; limit 22 LocalRateLimit
        tls /inner => limit 22 LocalRateLimit
        "#,
    );
    let shown = document::certificates(&configuration, &Bootstrap, &ask("tls")).unwrap();
    assert_eq!(paths(&shown), ["12 /etc/proxy/site.pem", "14 Text(\"-----BEGIN\")"]);
    let folder = make_prefix();
    let mut surroundings = of_a_test(folder.path());
    surroundings.asks[0].spec.tls = true;
    let copy = envoy::adapt(&configuration, &surroundings).unwrap();
    let inner = text(&copy).split("- name: inner").nth(1).unwrap();
    let pipe = format!("{}/run/1.sock", folder.path().display());
    for kept in ["envoy.transport_sockets.tls", &*pipe] {
        assert!(inner.contains(kept), "{kept}: {inner}");
    }
    assert_eq!(text(&copy).matches("envoy.transport_sockets.tls").count(), 1);
}

const ENVOY_OTHERS: &str = r#"
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - filter_chain_match: {source_prefix_ranges: [{address_prefix: 192.0.2.0, prefix_len: 24}]}
      filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          tracing: {provider: {name: zipkin}}
          http_filters:
          - name: auth
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz}
          - name: off
            disabled: true
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor}
          - name: limit
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit}
          - name: jwt
            typed_config:
              {"@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication,
              rules: [{match: {prefix: /}, requires: {provider_name: one}}], providers: {one: {remote_jwks: {http_uri: {cluster: keys}}}}}
          route_config:
            virtual_hosts:
            - name: open
              domains: ["open.example"]
              typed_per_filter_config:
                auth: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute, disabled: true}
              routes:
              - match: {prefix: /}
                route: {cluster: one, request_mirror_policies: [{cluster: two}]}
            - name: others
              domains: ["*"]
              routes:
              - match: {prefix: /}
                route: {cluster: one, hash_policy: [{connection_properties: {source_ip: true}}]}
                typed_per_filter_config:
                  limit: {"@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit, token_bucket: {max_tokens: 9}, filter_enabled: &on {default_value: {numerator: 100}}, filter_enforced: *on}
  - address: {socket_address: {address: 0.0.0.0, port_value: 81}}
    filter_chains:
    - filter_chain_match: {sourcePrefixRanges: [{address_prefix: 192.0.2.0, prefix_len: 24}]}
      filters:
      - name: tcp
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, cluster: one}
  clusters:
  - name: one
    transport_socket: {name: envoy.transport_sockets.tls}
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}}]}]}
"#;

#[test]
fn envoy_by_what_a_host_has_switched_off_and_sends_elsewhere() {
    let configuration = make_source("envoy.yaml", ENVOY_OTHERS);
    let tls = r#"origin_tls 48 transport_socket {"name":"envoy.transport_sockets.tls"}"#;
    let open = "service 11 tracing; service 23 remote_jwks; service 32 request_mirror_policies";
    let closed = "service 11 tracing; service 14 ExtAuthz; service 23 remote_jwks";
    let chain = "client_address 6 filter_chain_match by address";
    must_be(
        &|ask| document::replaced(&configuration, &Bootstrap, ask),
        &format!(
            "
            :80 open.example => {tls}; {open}; {chain}
            :80 => {tls}; {closed}; limit 39 LocalRateLimit; {chain}; client_address 37 route by address
            :81 => {tls}; client_address 42 filter_chain_match by address
            "
        ),
    );
}

const CADDY_OTHERS: &str = r#"{
  "apps": {
    "http": {"servers": {
      "web": {
        "listen": [":8080"],
        "routes": [
          {"match": [{"host": ["a.example"]}], "terminal": true, "handle": [{"handler": "subroute", "routes": [
            {"match": [{"remote_ip": {"ranges": ["192.0.2.0/24"]}}], "handle": [{"handler": "encode", "encodings": {"gzip": {}}}]},
            {"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}]}
          ]}]},
          {"match": [{"host": ["b.example"]}], "terminal": true, "handle": [{"handler": "subroute", "routes": [
            {"handle": [{"handler": "reverse_proxy", "rewrite": {"uri": "/auth"}, "handle_response": [{"match": {"status_code": [2]}}], "upstreams": [{"dial": "192.0.2.2:80"}]}]},
            {"match": [{"expression": "remote_ip('192.0.2.0/24')"}], "handle": [{"handler": "headers"}]},
            {"handle": [{"handler": "reverse_proxy",
              "handle_response": [{"match": {"headers": {"X-A": ["*"]}}}],
              "load_balancing": {"selection_policy": {"policy": "ip_hash"}},
              "upstreams": [{"dial": "{http.request.host}:80"}]}]}
          ]}]},
          {"match": [{"host": ["c.example"]}], "handle": [
            {"handler": "map", "source": "{http.request.remote.host}", "destinations": ["{tier}"]},
            {"handler": "subroute", "routes": [
              {"match": [{"vars": {"{tier}": ["gold"]}}], "handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "unix//run/gold.sock"}]}]},
              {"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}]}
          ]}]}
        ]
      }
    }}
  }
}
"#;

#[test]
fn caddy_by_the_routes_that_a_request_meets() {
    let configuration = make_source("caddy.json", CADDY_OTHERS);
    must_be(
        &|ask| document::replaced(&configuration, &CaddyJson, ask),
        "
        :8080 a.example Accept-Encoding=gzip => content 8 encode; client_address 8 remote_ip
        :8080 b.example Accept-Encoding=gzip => names 17 dial {http.request.host}:80; service 12 reverse_proxy with handle_response; content 15 handle_response; client_address 13 expression; client_address 16 lb_policy ip_hash
        :8080 c.example => servers 22 dial unix/; client_address 20 {http.request.remote.host}
        ",
    );
}

const CADDY: &str = r#"{
  "apps": {
    "tls": {"certificates": {"load_files": [{"certificate": "site.pem", "key": "site.key"}]}},
    "http": {"servers": {
      "web": {
        "listen": [":8080"],
        "routes": [
          {"handle": [{"handler": "encode", "encodings": {"gzip": {}}}]},
          {"match": [{"path": ["/tls/*"]}], "terminal": true, "handle": [
            {"handler": "reverse_proxy", "transport": {"protocol": "http", "tls": {}, "versions": ["2"]}, "upstreams": [{"dial": "192.0.2.1:443"}]}
          ]},
          {"match": [{"path": ["/many/*"]}], "terminal": true, "handle": [
            {"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}, {"dial": "unix//run/app.sock"}]}
          ]},
          {"match": [{"path": ["/inner/*"]}], "terminal": true, "handle": [
            {"handler": "reverse_proxy", "transport": {"protocol": "http", "tls": {}}, "upstreams": [{"dial": "localhost:8081"}]}
          ]},
          {"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}]}
        ]
      },
      "behind": {"listen": [":8081"], "routes": [
        {"match": [{"path": ["/inner/again/*"]}], "handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "127.0.0.1:8081"}, {"dial": "192.0.2.1:80"}, {"dial": "192.0.2.2:80"}]}]},
        {"handle": [{"handler": "static_response"}]}
      ]}
    }}
  }
}
"#;

#[test]
fn caddy_by_handlers() {
    let configuration = make_source("caddy.json", CADDY);
    must_be(
        &|ask| document::replaced(&configuration, &CaddyJson, ask),
        "
        :8080 => 
        :8080 Accept-Encoding=gzip => content 8 encode
        :8080 /tls/ => origin_tls 10 transport tls {}; origin_tls 10 transport versions [\"2\"]
        :8080 /many/ => servers 13 2 upstreams; servers 13 dial unix/
        :8080 /inner/ => 
        :8080 /inner/again/ => servers 22 2 upstreams
        ",
    );
    let shown = document::certificates(&configuration, &CaddyJson, &ask(":8080")).unwrap();
    assert_eq!(paths(&shown), ["3 /etc/proxy/site.pem"]);
    for (policies, expected) in [
        ("", "p256"),
        (r#"{"subjects": ["*.test"], "key_type": "rsa2048"}, "#, "rsa2048"),
        (r#"{"subjects": ["a.example"], "key_type": "rsa2048"}, {"key_type": "p384"}, "#, "p384"),
    ] {
        let automatic = format!(r#""automation": {{"policies": [{policies}{{}}]}}"#);
        let text = CADDY.replace(
            r#""certificates": {"load_files": [{"certificate": "site.pem", "key": "site.key"}]}"#,
            &automatic,
        );
        let spec = ask("tls");
        let shown = document::certificates(&make_source("caddy.json", &text), &CaddyJson, &spec);
        assert_eq!(shown.unwrap()[0].pem, PemLocation::Automatic(expected.to_owned()));
    }
    let folder = make_prefix();
    let copy = caddy::adapt(&configuration, &of_a_test(folder.path())).unwrap();
    let inner = text(&copy)
        .lines()
        .find(|line| line.contains("\"tls\": {}, ") || line.contains("\"tls\": {}}"))
        .unwrap_or_else(|| panic!("{}", text(&copy)));
    assert!(inner.contains("/run/") && !inner.contains("localhost:8081"), "{inner}");
}
