//! Tests of gateways that speak protocols other than HTTP/1.1 to their origin servers; weir's origin server answers
//! each.

use std::fs;

use weir_model::study::{ProxyKind, Settings};
use weir_origin::{Content, Origin, OriginConfig};
use weir_sut::UserConfiguration;

use crate::programs::setup::{Setup, ask_at, run};
use crate::programs::support::{free_address, get};

/// Returns an nginx.conf with a location of this content.
fn nginx(location: &str) -> String {
    format!(
        "worker_processes 1;\nevents {{ }}\nhttp {{\n    access_log off;\n    server {{\n        listen 18080;\n        \
         location / {{\n            {location}\n        }}\n    }}\n}}\n"
    )
}

/// Returns nginx's directives for the variables that every application needs.
fn variables(module: &str) -> String {
    let names = "REQUEST_METHOD $request_method, REQUEST_URI $request_uri, CONTENT_LENGTH $content_length, \
                 SERVER_PROTOCOL $server_protocol, SCRIPT_FILENAME /srv/app.php";
    names.split(", ").map(|pair| format!("{module}_param {pair};\n            ")).collect()
}

/// Returns an haproxy.cfg whose only server has these options, with `backend` before it and `sections` at the end.
fn haproxy(options: &str, backend: &str, sections: &str) -> String {
    format!(
        "defaults\n    mode http\n    timeout connect 5s\n    timeout client 10s\n    timeout server 10s\n\
         frontend web\n    bind :18080\n    default_backend app\n\
         backend app\n    {backend}\n    server one 192.0.2.1:9000 {options}\n{sections}"
    )
}

const FCGI_APP: &str =
    "fcgi-app php\n    docroot /srv/www\n    index app.php\n    path-info ^(/.+\\.php)(/.*)?$\n";

/// Configuration of an Envoy that speaks HTTP/2 to its cluster.
const ENVOY: &str = r#"
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 18080}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: "/"}, route: {cluster: app}}]}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: app
    type: STRICT_DNS
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: app
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: app.example.org, port_value: 50051}}}}]}]
"#;

/// Returns the configuration of a Caddy whose only handler uses this transport.
fn caddy(transport: &str) -> String {
    format!(
        r#"{{"admin": {{"disabled": true}}, "apps": {{"http": {{"servers": {{"web": {{"listen": [":18080"], "routes": [
        {{"handle": [{{"handler": "reverse_proxy", "upstreams": [{{"dial": "app.example.org:9000"}}],
        "transport": {transport}}}]}}]}}}}}}}}}}"#
    )
}

/// Returns the gateways: a name for the protocol, the proxy, and its configuration.
fn gateways() -> Vec<(&'static str, ProxyKind, String)> {
    use ProxyKind::{Caddy, Envoy, Haproxy, Nginx};
    let kept_open = passed_by("fastcgi")
        .replace("fastcgi_pass 192.0.2.1:9000", "fastcgi_keep_conn on; fastcgi_pass app")
        .replace(
            "    server {\n",
            "    upstream app { server 192.0.2.1:9000; keepalive 4; }\n    server {\n",
        );
    vec![
        ("FastCGI", Nginx, passed_by("fastcgi")),
        ("FastCGI, kept", Nginx, kept_open),
        ("uwsgi", Nginx, passed_by("uwsgi")),
        ("SCGI", Nginx, passed_by("scgi")),
        ("memcached", Nginx, nginx("set $memcached_key $uri; memcached_pass 192.0.2.1:11211;")),
        ("gRPC", Nginx, nginx("grpc_pass grpc://192.0.2.1:50051;")),
        ("gRPC over TLS", Nginx, nginx("grpc_pass grpcs://192.0.2.1:50051;")),
        ("HTTP/2", Haproxy, haproxy("proto h2", "", "")),
        ("HTTP/2 by ALPN", Haproxy, haproxy("ssl verify none alpn h2,http/1.1", "", "")),
        ("FastCGI", Haproxy, haproxy("proto fcgi", "use-fcgi-app php", FCGI_APP)),
        ("HTTP/2", Envoy, ENVOY.to_owned()),
        ("h2c", Caddy, caddy(r#"{"protocol": "http", "versions": ["h2c", "2"]}"#)),
        ("FastCGI", Caddy, caddy(r#"{"protocol": "fastcgi", "root": "/srv/www"}"#)),
    ]
}

fn passed_by(module: &str) -> String {
    nginx(&format!("{}{module}_pass app.sock;", variables(module)))
        .replace("app.sock", "192.0.2.1:9000")
}

#[test]
fn gateways_of_every_protocol_are_answered() {
    // The second is more than a window of HTTP/2 and than a record of FastCGI; gRPC's lengths of both are text.
    const SIZES: [u64; 2] = [1024, 0x04_4040];
    for (name, kind, text) in gateways() {
        for size in SIZES {
            let mut config = OriginConfig::new(vec![([127, 0, 0, 1], 0).into()]);
            config.content = Content::text(size);
            let origin = Origin::start(config).unwrap();
            let folder = weir_sut::WorkFolder::create().unwrap();
            let extension = if kind == ProxyKind::Caddy { "json" } else { "conf" };
            let file = folder.prefix(&format!("user.{extension}"));
            fs::write(&file, &text).unwrap();
            let asks = [ask_at(free_address())];
            let setup = Setup {
                settings: Settings::new(),
                own: Some(UserConfiguration { file: &file, asks: &asks }),
                ..Setup::proxy(kind, &[], origin.addresses()[0])
            };
            let description = format!("{name} from {}, {size} bytes", kind.name());
            let configuration = setup
                .try_write(&folder, asks[0].at)
                .unwrap_or_else(|error| panic!("{description}: {error}"));
            let program = crate::programs::setup::program(kind);
            let proxy = run(&*program, &configuration)
                .unwrap_or_else(|error| panic!("{description}: {error}"));
            for _ in 0..3 {
                let response = get(proxy.address(), "/app.php?a=1");
                let (head, content) = response.split_once("\r\n\r\n").expect(&description);
                assert!(head.starts_with("HTTP/1.1 200"), "{description}: {head}");
                let expected = Content::text(size);
                let expected = std::str::from_utf8(expected.bytes()).unwrap();
                assert!(content.contains(&expected[..1000]), "{description}: {head}");
                assert!(content.len() as u64 >= size, "{description}: {}", content.len());
            }
            let counters = origin.counters(0);
            assert_eq!(
                (counters.requests, counters.bad_requests),
                (3, 0),
                "{description}: {counters:?}"
            );
        }
    }
}
