use weir_caddy::language::CaddyJson;
use weir_configuration::document;
use weir_envoy::language::Bootstrap;

use super::{all_must_be, ask, must_be};
use crate::languages::support::{make_source, must_have};

/// Checks that listeners in files that are not read are named if there are no others.
#[test]
fn listeners_that_envoy_discovers_are_named() {
    let text =
        "dynamic_resources: {lds_config: {path_config_source: {path: /etc/envoy/lds.yaml}}}\n";
    let source = make_source("envoy.yaml", text);
    let error = document::asked(&source, &Bootstrap, &ask("")).unwrap_err();
    must_have(error.hint.unwrap(), &["listeners of `lds_config` are not read"]);
}

const ENVOY: &str = r#"
static_resources:
  listeners:
  - name: redirect
    address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, redirect: {https_redirect: true}}]}]}
  - name: health
    address: {socket_address: {address: 0.0.0.0, port_value: 9000}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          http_filters:
          - name: check
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck
              pass_through_mode: false
              headers: [{name: ":path", string_match: {exact: /}}]
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app}}]}]}
  - name: web
    address: {socket_address: {address: 0.0.0.0, port_value: 8080}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config:
            virtual_hosts:
            - name: any
              domains: ["*"]
              routes:
              - {match: {path: /health}, direct_response: {status: 200}}
              - {match: {prefix: /h, headers: [{name: x}]}, route: {cluster: other}}
              - {match: {safe_regex: {regex: "/v[0-9]+/.*"}}, route: {cluster: versions}}
              - {match: {prefix: /}, route: {cluster: app}}
            - name: shop
              domains: [shop.example, "*.shop.example", "port.example:8443"]
              routes:
              - {match: {path_separated_prefix: /api}, route: {cluster: api}}
              - {match: {prefix: /blocked}, direct_response: {status: 403}}
  - name: secure
    address: {socket_address: {address: 0.0.0.0, port_value: 443}}
    filter_chains:
    - filter_chain_match: {server_names: ["a.example"]}
      transport_socket: &tls
        typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext}
      filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config: {virtual_hosts: [{name: of-a, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app}}]}]}
    - filter_chain_match: {server_names: ["*.example"]}
      transport_socket: *tls
      filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config: {virtual_hosts: [{name: of-others, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app}}]}]}
"#;

#[test]
fn envoy_chooses_by_chain_domain_and_route() {
    let source = make_source("envoy.yaml", ENVOY);
    all_must_be(
        &|ask| document::asked(&source, &Bootstrap, ask),
        "
            => 0.0.0.0:8080 | virtual host any | route with prefix / | passes it on
            :8080 /h => 0.0.0.0:8080 | virtual host any | route with prefix / | passes it on
            :8080 /health => 0.0.0.0:8080 | virtual host any | route with path /health | returns 200
            :8080 /v1/x => 0.0.0.0:8080 | virtual host any | route | passes it on
            :8080 shop.example /api/x => 0.0.0.0:8080 | virtual host shop | route with path_separated_prefix /api | passes it on
            :8080 port.example:8443 /api/x => 0.0.0.0:8080 | virtual host shop | route with path_separated_prefix /api | passes it on
            :8080 port.example /api/x => 0.0.0.0:8080 | virtual host any | route with prefix / | passes it on
            :8080 a.shop.example /blocked => 0.0.0.0:8080 | virtual host shop | route with prefix /blocked | returns 403
            :8080 shop.example /apix => 42:15 a request for `/apix` with the host `shop.example` at 0.0.0.0:8080: virtual host shop has no route for it
            :80 => 0.0.0.0:80 | virtual host all | route with prefix / | redirects
            :9000 => 0.0.0.0:9000 | - | - | shows statistics or health
            tls a.example => 0.0.0.0:443 | virtual host of-a | route with prefix / | passes it on
            tls b.example => 0.0.0.0:443 | virtual host of-others | route with prefix / | passes it on
            # A copy opens its first chain to any name.
            tls => 0.0.0.0:443 | virtual host of-a | route with prefix / | passes it on
            tls :443 c.other => 47:5 a request for `/` with the host `c.other` at 0.0.0.0:443 (TLS): no filter chain takes the name `c.other`
        ",
    );
    let spec = ask(":8080 shop.example /api/x");
    let answer = document::asked(&source, &Bootstrap, &spec).unwrap().remove(0);
    let pointer = "/static_resources/listeners/2/filter_chains/0/filters/0/typed_config/route_config/virtual_hosts/1";
    assert_eq!(answer.server.unwrap().pointer, pointer);
}

/// Uses routes in the form that programs write for gateways.
#[test]
fn envoy_chooses_by_headers_and_shares_of_requests() {
    let text = ENVOY.replace(
        r#"              - {match: {prefix: /}, route: {cluster: app}}
            - name: shop"#,
        r#"              - {match: {prefix: /, headers: [{name: ":authority", string_match: {exact: admin.example}}]}, redirect: {https_redirect: true}}
              - {match: {prefix: /all, runtime_fraction: {default_value: {numerator: 100, denominator: HUNDRED}, runtime_key: x}}, route: {cluster: app}}
              - {match: {prefix: /half, runtime_fraction: {default_value: {numerator: 50}}}, route: {cluster: app}}
              - {match: {prefix: /half/sure}, route: {cluster: app}}
              - {match: {prefix: /cookie, cookies: [{name: beta, string_match: {exact: x}}]}, route: {cluster: app}}
              - {match: {prefix: /get, headers: [{name: ":method", exact_match: GET}]}, route: {cluster: app}}
              - {match: {prefix: /mine, headers: [{name: x-mine, present_match: true}]}, route: {cluster: app}}
              - {match: {prefix: /not, headers: [{name: x-mine, string_match: {prefix: a}, invert_match: true}]}, direct_response: {status: 404}}
            - name: matched
              domains: [matched.example]
              matcher: {on_no_match: {action: {}}}
            - name: shop"#,
    );
    let source = make_source("envoy.yaml", &text);
    let any = |rest: &str| format!("0.0.0.0:8080 | virtual host any | {rest}");
    let unknown = "does what the configuration alone does not say";
    let nothing = "35:15 a request for `/mine` with the host `weir.test` at 0.0.0.0:8080: virtual host any has no route for it";
    let cases = [
        (":8080 admin.example /x", any("route with prefix / | redirects")),
        (":8080 /all", any("route with prefix /all | passes it on")),
        (":8080 /half", any(&format!("route with prefix /half | {unknown}"))),
        (":8080 /half/sure", any(&format!("route with prefix /half | {unknown}"))),
        (":8080 /cookie", any(&format!("route with prefix /cookie | {unknown}"))),
        (":8080 /get", any("route with prefix /get | passes it on")),
        (":8080 /mine x-mine=1", any("route with prefix /mine | passes it on")),
        (":8080 /mine", nothing.to_owned()),
        (":8080 /not x-mine=b", any("route with prefix /not | returns 404")),
        (":8080 /not", any(&format!("route with prefix /not | {unknown}"))),
        (":8080 matched.example", format!("0.0.0.0:8080 | virtual host matched | - | {unknown}")),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(ask, shown)| (*ask, &**shown)).collect();
    must_be(&|ask| document::asked(&source, &Bootstrap, ask), &cases);
    let names = r#"server_names: ["a.example"]"#;
    let text = ENVOY.replace(names, &format!("{names}, source_type: EXTERNAL"));
    let source = crate::languages::support::make_source("envoy.yaml", &text);
    let unknown = format!("0.0.0.0:443 | - | - | {unknown}");
    must_be(&|ask| document::asked(&source, &Bootstrap, ask), &[("tls :443 a.example", &*unknown)]);
}

const CADDY: &str = r#"{"apps": {"http": {"servers": {
  "redirects": {"listen": [":80"], "routes": [
    {"handle": [{"handler": "static_response", "status_code": 308, "headers": {"Location": ["https://{http.request.host}"]}}]}
  ]},
  "site": {"listen": [":443"], "tls_connection_policies": [{}], "routes": [
    {"match": [{"host": ["shop.example"]}], "terminal": true, "handle": [{"handler": "subroute", "routes": [
      {"group": "g", "match": [{"path": ["/static/*", "*.css"]}], "handle": [{"handler": "file_server"}]},
      {"group": "g", "match": [{"path": ["/metrics"]}], "handle": [{"handler": "metrics"}]},
      {"group": "g", "handle": [{"handler": "encode"}, {"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}]}
    ]}]},
    {"match": [{"host": ["*.wild.example"]}, {"not": [{"path": ["/x"]}], "host": ["not.example"]}],
     "handle": [{"handler": "static_response", "body": "ok"}]}
  ]},
  "plain": {"listen": [":8080"], "routes": [{"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}]}]},
  "rewritten": {"listen": [":8083"], "routes": [
    {"match": [{"path": ["/api/*"]}], "handle": [{"handler": "subroute", "routes": [{"handle": [{"handler": "rewrite", "strip_path_prefix": "/API"}]}]}]},
    {"group": "g", "match": [{"path": ["/old/*"]}], "handle": [{"handler": "rewrite", "uri": "/new{http.request.uri}"}]},
    {"group": "g", "match": [{"path": ["/file/*"]}], "handle": [{"handler": "rewrite", "uri": "{http.matchers.file.relative}"}]},
    {"match": [{"path": ["/swap/*"]}], "handle": [{"handler": "rewrite", "uri_substring": [{"find": "swap", "replace": "users"}]}]},
    {"match": [{"path": ["/users/*"]}], "handle": [{"handler": "reverse_proxy"}]},
    {"match": [{"path": ["/new/old/*"], "method": ["GET"]}], "handle": [{"handler": "file_server"}]},
    {"handle": [{"handler": "headers", "request": {"set": {"X-T": ["1"]}}}]},
    {"match": [{"header": {"X-T": ["1"]}, "path": ["/set"]}], "handle": [{"handler": "file_server"}]},
    {"match": [{"header": {"X-V": ["*b*"], "X-W": null}}], "handle": [{"handler": "metrics"}]},
    {"match": [{"header_regexp": {"X-V": {"pattern": "^c"}}}], "handle": [{"handler": "static_response"}]},
    {"match": [{"expression": "x"}], "handle": [{"handler": "subroute", "routes": [{"handle": [{"handler": "encode"}]}]}]},
    {"match": [{"expression": "x", "path": ["/perhaps"]}], "handle": [{"handler": "reverse_proxy"}]},
    {"handle": [{"handler": "reverse_proxy"}]}
  ]}
}}}}
"#;

#[test]
fn caddy_chooses_by_its_routes() {
    let source = make_source("caddy.json", CADDY);
    all_must_be(
        &|ask| document::asked(&source, &CaddyJson, ask),
        "
            => :8080 | server plain | route | passes it on
            :80 => :80 | server redirects | route | redirects
            tls shop.example => :443 | server site | route for shop.example | passes it on
            tls shop.example /static/a => :443 | server site | route for shop.example /static/* *.css | answers from files
            tls :443 shop.example /metrics => :443 | server site | route for shop.example /metrics | shows statistics or health
            tls a.wild.example => :443 | server site | route for *.wild.example | returns 200
            tls :443 a.b.wild.example => 5:11 a request for `/` with the host `a.b.wild.example` at :443 (TLS): server site has no route for it
            tls not.example /y => :443 | server site | route for *.wild.example | returns 200
            tls :443 not.example /x => 5:11 a request for `/x`…
            :81 => 14:24 no server is in clear on port 81
            :8083 /api/users/1 => :8083 | server rewritten | route for /users/* | passes it on
            :8083 /old/x?a=1 => :8083 | server rewritten | route for /new/old/* | answers from files
            :8083 HEAD /old/x => :8083 | server rewritten | route | passes it on
            :8083 /file/x => :8083 | server rewritten | route for /file/* | does what the configuration alone does not say
            :8083 /swap/x => :8083 | server rewritten | route for /users/* | passes it on
            :8083 /set => :8083 | server rewritten | route for /set | does what the configuration alone does not say
            :8083 X-V=abc => :8083 | server rewritten | route | shows statistics or health
            :8083 X-V=abc X-W=1 => :8083 | server rewritten | route | passes it on
            :8083 X-V=cd => :8083 | server rewritten | route | returns 200
            :8083 /perhaps => :8083 | server rewritten | route for /perhaps | does what the configuration alone does not say
        ",
    );
}

/// The expected status of a load says whether a request is meant to miss.
#[test]
fn nothing_need_be_there_where_404_is_right() {
    let source = make_source("envoy.yaml", ENVOY);
    let mut missing = ask(":8080 shop.example /none");
    assert!(document::asked(&source, &Bootstrap, &missing).is_err());
    missing.requests[0].may_miss = true;
    assert!(document::asked(&source, &Bootstrap, &missing).is_ok());
}

/// Automatic HTTPS applies to any port but that of HTTP, for a server whose routes name hosts.
#[test]
fn caddy_speaks_tls_for_names_at_any_port() {
    let text = r#"{"apps": {"http": {"servers": {
  "named": {"listen": [":8443"], "routes": [{"match": [{"host": ["shop.example"]}], "handle": [{"handler": "reverse_proxy"}]}]},
  "plain": {"listen": [":8080"], "routes": [{"handle": [{"handler": "reverse_proxy"}]}]},
  "skipped": {"listen": [":8082"], "automatic_https": {"skip": ["shop.example"]}, "routes": [{"match": [{"host": ["shop.example"]}], "handle": [{"handler": "reverse_proxy"}]}]},
  "clear": {"listen": [":8081"], "automatic_https": {"disable": true}, "routes": [{"match": [{"host": ["shop.example"]}], "handle": [{"handler": "reverse_proxy"}]}]}
}}}}
"#;
    let source = make_source("caddy.json", text);
    must_be(
        &|ask| document::asked(&source, &CaddyJson, ask),
        &[
            ("tls shop.example", ":8443 | server named | route for shop.example | passes it on"),
            (":8080 shop.example", ":8080 | server plain | route | passes it on"),
            (":8081 shop.example", ":8081 | server clear | route for shop.example | passes it on"),
            (
                ":8082 shop.example",
                ":8082 | server skipped | route for shop.example | passes it on",
            ),
        ],
    );
}

/// Uses a program behind a front controller, whose files are not known.
#[test]
fn caddy_says_where_it_depends_on_more_than_the_request() {
    let text = r#"{"apps": {"http": {"servers": {"site": {"listen": [":8080"], "routes": [
  {"match": [{"header": {"Connection": ["*Upgrade*"], "Upgrade": ["websocket"]}}], "handle": [{"handler": "static_response", "status_code": 426}]},
  {"match": [{"method": ["POST"]}], "handle": [{"handler": "static_response", "status_code": 405}]},
  {"match": [{"path": ["/php/*"], "file": {"try_files": ["/index.php"]}}], "handle": [{"handler": "rewrite", "uri": "/index.php"}]},
  {"match": [{"file": {}}], "handle": [{"handler": "headers"}]},
  {"match": [{"path": ["/php/app"]}], "handle": [{"handler": "reverse_proxy"}]},
  {"handle": [{"handler": "file_server"}]}
]}}}}}
"#;
    let source = make_source("caddy.json", text);
    must_be(
        &|ask| document::asked(&source, &CaddyJson, ask),
        &[
            ("/a", ":8080 | server site | route | answers from files"),
            (
                "/php/a",
                ":8080 | server site | route for /php/* | does what the configuration alone does not say",
            ),
            (
                "/php/app",
                ":8080 | server site | route for /php/* | does what the configuration alone does not say",
            ),
        ],
    );
}

#[test]
fn what_envoy_wants_of_clients_that_a_load_has_not_is_refused() {
    let manager = "v3.HttpConnectionManager\n          route_config:\n            virtual_hosts:\n            - name: any";
    assert!(ENVOY.contains(manager));
    let ending =
        "at 0.0.0.0:8080: it speaks only HTTP/2 (`codec_type: HTTP2`), and loads speak HTTP/1.1";
    for spelled in ["codec_type: HTTP2", "codecType: 2"] {
        let alone = manager.replace("Manager\n", &format!("Manager\n          {spelled}\n"));
        let source = make_source("envoy.yaml", &ENVOY.replace(manager, &alone));
        let error = document::asked(&source, &Bootstrap, &ask(":8080")).unwrap_err();
        assert_eq!((error.line, error.what.ends_with(ending)), (33, true), "{error}");
    }
    let demand = "v3.DownstreamTlsContext, require_client_certificate: true}";
    let source = make_source("envoy.yaml", &ENVOY.replace("v3.DownstreamTlsContext}", demand));
    must_be(
        &|ask| document::asked(&source, &Bootstrap, ask),
        &[
            ("tls a.example", "52:…"),
            (
                "cert a.example",
                "0.0.0.0:443 | virtual host of-a | route with prefix / | passes it on",
            ),
        ],
    );
    let error = document::asked(&source, &Bootstrap, &ask("tls a.example")).unwrap_err();
    must_have(
        error.what,
        &[
            "clients have to show a certificate (`require_client_certificate`), and the load has none",
        ],
    );
}

#[test]
fn what_caddy_wants_of_clients_that_a_load_has_not_is_refused() {
    for (policies, mode) in [
        (r#"[{"client_authentication": {"mode": "require"}}]"#, Some("require")),
        (
            r#"[{"client_authentication": {"mode": "require_and_verify", "trusted_ca_certs": []}}]"#,
            Some("require_and_verify"),
        ),
        (r#"[{"client_authentication": {"trusted_ca_certs": ["MII"]}}]"#, Some("require")),
        (r#"[{"client_authentication": {"mode": "verify_if_given"}}]"#, None),
        (r#"[{"client_authentication": {}}]"#, None),
        (
            r#"[{"match": {"sni": ["other.example"]}, "client_authentication": {"mode": "require"}}, {}]"#,
            None,
        ),
        (
            r#"[{"match": {"sni": ["*.example"]}, "client_authentication": {"mode": "require"}}, {}]"#,
            Some("require"),
        ),
    ] {
        let source = make_source("caddy.json", &CADDY.replace("[{}]", policies));
        let outcome = document::asked(&source, &CaddyJson, &ask("tls shop.example"));
        match mode {
            Some(mode) => assert_eq!(outcome.unwrap_err().what, refusal_of(mode), "{policies}"),
            None => assert!(outcome.is_ok(), "{policies}"),
        }
        let certified = document::asked(&source, &CaddyJson, &ask("cert shop.example"));
        assert!(certified.is_ok(), "{policies}");
    }
    // QUIC alone is no listener for a load.
    let text =
        CADDY.replace(r#""listen": [":8080"]"#, r#""listen": [":8080"], "protocols": ["h3"]"#);
    let error = document::asked(&make_source("caddy.json", &text), &CaddyJson, &ask(":8080"));
    assert_eq!(error.unwrap_err().what, "no server is in clear on port 8080");
}

fn refusal_of(mode: &str) -> String {
    format!(
        "a request for `/` with the host `shop.example` at :443 (TLS): clients have to show a certificate \
         (`client_authentication: {mode}`), and the load has none"
    )
}
