//! Which listener, server and location answers: as each proxy chooses them.

use weir_configuration::document::{self, Dialect};
use weir_configuration::{Asked, ConfigurationError, Source, haproxy, nginx};
use weir_model::study::{AskSpec, RequestedSpec};

use crate::support::{must_have, source};

/// What is asked, in short: `tls`, `:8080` for a port, `shop.example` for a host, `/path`; or nothing of it.
fn ask(text: &str) -> AskSpec {
    let mut ask = AskSpec::default();
    let mut target = "/".to_owned();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match word.split_at(1) {
            (":", port) => ask.port = port.parse().ok(),
            ("/", _) => target = word.to_owned(),
            _ if word == "tls" => ask.tls = true,
            _ if word == "files" => ask.files = true,
            _ => ask.host = Some(word.to_owned()),
        }
    }
    ask.requests = vec![RequestedSpec {
        target,
        ..RequestedSpec::default()
    }];
    ask
}

/// The answer in short: `*:80 | server shop | location / | passes it on`.
fn shown(asked: &Asked) -> String {
    let spot = |spot: &Option<weir_configuration::Spot>| {
        spot.as_ref().map_or("-", |it| &it.name).to_owned()
    };
    let Asked {
        listener,
        server,
        location,
        answer,
        ..
    } = asked;
    format!(
        "{} | {} | {} | {answer}",
        listener.address,
        spot(server),
        spot(location)
    )
}

type LookUp<'a> = &'a dyn Fn(&AskSpec) -> Result<Vec<Asked>, ConfigurationError>;

/// Looks each ask up; one that is refused has its error's words and place instead.
#[track_caller]
fn must_be(look_up: LookUp<'_>, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let found = match look_up(&ask(text)) {
            Ok(asked) => shown(&asked[0]),
            Err(error) => format!("{}:{} {}", error.line, error.column, error.what),
        };
        match expected.strip_suffix('…') {
            Some(begin) => assert!(found.starts_with(begin), "{text}: {found}"),
            None => assert_eq!(found, *expected, "{text}"),
        }
    }
}

const NGINX: &str = "\
events { }
http {
    upstream app { server 192.0.2.1:80; }
    server { listen 80 default_server; return 404; }
    server {
        if ($host = shop.example) { return 301 https://$host$request_uri; }
        listen 80;
        server_name shop.example;
        return 404;
    }
    server {
        listen 443 ssl default_server;
        ssl_reject_handshake on;
    }
    server {
        listen 443 ssl;
        server_name shop.example *.shop.example;
        location = /exact { return 204; }
        location / { proxy_pass http://app; }
        location ^~ /static/ { root /srv; }
        location ~* \\.(png|jpg)$ { expires 1h; root /srv; }
        location /api/ {
            proxy_pass http://app;
            location ~ \\.json$ { proxy_pass http://app; }
        }
        location /old/ { return 308 /new/; }
        location /spa/ { try_files $uri @app; }
        location @app { proxy_pass http://app; }
        location /status { stub_status; }
        location /gone { return 410; }
    }
    server { listen 443 ssl; server_name www.*; location /only { proxy_pass http://app; } }
    server { listen 443 ssl; server_name ~^node\\d+\\.example$; location / { proxy_pass http://app; } }
    server { listen 127.0.0.1:8081; location / { stub_status; } }
    server { listen 8080; server_name internal; location / { proxy_pass http://app; } }
    server { listen unix:/run/x.sock; location / { proxy_pass http://app; } }
}
";

#[test]
fn nginx_chooses_by_server_name_and_location() {
    let source = source("nginx.conf", NGINX);
    let shop = |rest: &str| format!("443 | server shop.example *.shop.example | {rest}");
    let cases = [
        ("", "8080 | server internal | location / | passes it on".to_owned()),
        (":80", "80 | server | - | returns 404".to_owned()),
        (":80 shop.example", "80 | server shop.example | - | redirects".to_owned()),
        // The default of the only TLS port refuses whoever names nobody that it knows.
        ("tls", "12:9 no listener with TLS passes on a request for `/` with the host `weir.test`: 443 (TLS)…".to_owned()),
        ("tls shop.example", shop("location / | passes it on")),
        ("tls shop.example /exact", shop("location = /exact | returns 204")),
        ("tls shop.example /static/a.png", shop("location ^~ /static/ | answers from files")),
        ("tls shop.example /x/a.PNG?v=1", shop("location ~* \\.(png|jpg)$ | answers from files")),
        ("tls shop.example /api/a.json", shop("location ~ \\.json$ | passes it on")),
        ("tls shop.example /api/a.png", shop("location ~* \\.(png|jpg)$ | answers from files")),
        ("tls shop.example /api/a", shop("location /api/ | passes it on")),
        ("tls shop.example /spa/a", shop("location @app | passes it on")),
        ("tls :443 shop.example /old/", shop("location /old/ | redirects")),
        ("tls :443 shop.example /status", shop("location /status | shows statistics or health")),
        ("tls :443 shop.example /gone", shop("location /gone | returns 410")),
        ("tls a.b.shop.example", shop("location / | passes it on")),
        ("tls www.any.example /only/a", "443 | server www.* | location /only | passes it on".to_owned()),
        ("tls node17.example", "443 | server ~^node\\d+\\.example$ | location / | passes it on".to_owned()),
        (":8081", "127.0.0.1:8081 | server | location / | shows statistics or health".to_owned()),
        // What is named must be there.
        (":81", "4:14 no HTTP server listens in clear on port 81".to_owned()),
        (":443", "4:14 no HTTP server listens in clear on port 443".to_owned()),
        ("tls :443 www.any.example /x", "32:5 a request for `/x` with the host `www.any.example` at 443 (TLS): no location of server www.* takes it…".to_owned()),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(ask, shown)| (*ask, &**shown)).collect();
    must_be(&|ask| nginx::asked(&source, ask), &cases);
}

#[test]
fn a_host_that_no_server_of_nginx_has_is_refused_unless_the_default_is_for_all() {
    let conf = |name: &str| {
        format!(
            "events {{ }}\nhttp {{\n    server {{ listen 80; server_name {name}; location / {{ proxy_pass http://192.0.2.1; }} }}\n}}\n"
        )
    };
    for (name, expected) in [
        ("_", "80 | server _ | location / | passes it on"),
        (
            "a.example",
            "3:5 a request for `/` with the host `b.example` at 80: no server there has the name `b.example`; the names there are a.example",
        ),
    ] {
        let source = source("nginx.conf", &conf(name));
        must_be(
            &|ask| nginx::asked(&source, ask),
            &[("b.example", expected)],
        );
        // Whoever names nobody gets the default.
        assert!(nginx::asked(&source, &ask("")).is_ok(), "{name}");
    }
}

/// As `sites-enabled` has it: the main file knows no listener by itself.
#[test]
fn listeners_of_nginx_are_found_through_includes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "nginx.conf",
        "events { }\nhttp { include conf.d/*.conf; include sites-enabled/*; }\n",
    );
    write("conf.d/10-log.conf", "access_log off;\n");
    write(
        "sites-enabled/a-tls",
        "server {\n    listen 443 ssl;\n    location / { include proxy.conf; }\n}\n",
    );
    write(
        "sites-enabled/b-clear",
        "server { listen 80; location / { include proxy.conf; } }\n",
    );
    write("proxy.conf", "proxy_pass http://192.0.2.1;\n");
    let user = nginx::read(&folder.path().join("nginx.conf"), None).unwrap();
    for (text, file, line, port) in [("", "b-clear", 1, 80), ("tls", "a-tls", 2, 443)] {
        let asked = nginx::asked(&user, &ask(text)).unwrap().remove(0);
        assert!(asked.listener.file.ends_with(file), "{asked:?}");
        assert_eq!(
            (asked.listener.line, asked.listener.port),
            (line, Some(port))
        );
        assert_eq!(asked.location.unwrap().name, "location /");
    }
}

const HAPROXY: &str = "\
defaults
    mode http
frontend stats
    bind :8404
    stats enable
    stats uri /
frontend redirects
    bind :80
    acl acme path_beg /.well-known/acme-challenge/
    use_backend acme if acme
    redirect scheme https code 301 unless acme or { ssl_fc }
    http-request redirect scheme https unless { ssl_fc } or acme
frontend web
    bind :8080
    bind :443 ssl crt site.pem
    monitor-uri /alive
    acl is_api hdr(host) -i api.example API2.example
    acl is_static path_beg /static /img
    acl is_static path_end .css
    acl limited src_http_req_rate gt 100
    http-request deny if limited
    http-request return status 200 if { path /ping }
    use_backend api if is_api !is_static
    use_backend static if is_static
    use_backend bk_%[req.hdr(host),map(/etc/map)] if { hdr_sub(host) dynamic }
    use_backend never if { ssl_fc_sni -m end .never }
    default_backend app
frontend closed
    bind :9000
    use_backend api if { hdr(host) api.example }
listen plain
    bind :7000-7010
    server s 192.0.2.1:80
frontend passed
    mode tcp
    bind :444
    tcp-request inspect-delay 5s
    use_backend app if { req.ssl_sni -m found }
backend acme
    server a 192.0.2.1:80
backend api
    server a 192.0.2.1:80
backend static
    server a 192.0.2.1:80
backend never
    server a 192.0.2.1:80
backend app
    server a 192.0.2.1:80
";

#[test]
fn haproxy_chooses_by_its_rules() {
    let source = source("haproxy.cfg", HAPROXY);
    must_be(
        &|ask| haproxy::asked(&source, ask),
        &[
            ("", ":8080 | frontend web | backend app | passes it on"),
            ("tls", ":443 | frontend web | backend app | passes it on"),
            (
                "tls a.never",
                ":443 | frontend web | backend never | passes it on",
            ),
            (
                "api.example",
                ":8080 | frontend web | backend api | passes it on",
            ),
            (
                "api2.example",
                ":8080 | frontend web | backend api | passes it on",
            ),
            (
                "api.example /img/a",
                ":8080 | frontend web | backend static | passes it on",
            ),
            (
                ":8080 /a.css?x",
                ":8080 | frontend web | backend static | passes it on",
            ),
            (
                ":8080 /alive",
                ":8080 | frontend web | - | shows statistics or health",
            ),
            (":8080 /ping", ":8080 | frontend web | - | returns 200"),
            (
                ":8404",
                ":8404 | frontend stats | - | shows statistics or health",
            ),
            (":80", ":80 | frontend redirects | - | redirects"),
            (
                "/.well-known/acme-challenge/x",
                ":80 | frontend redirects | backend acme | passes it on",
            ),
            (":7003", ":7000-7010 | listen plain | - | passes it on"),
            (":444", ":444 | frontend passed | - | closes the connection"),
            (
                ":9000 api.example",
                ":9000 | frontend closed | backend api | passes it on",
            ),
            (
                ":9000",
                "28:1 a request for `/` with the host `weir.test` at :9000: no rule gives it a backend",
            ),
            (
                ":81",
                "4:5 no `bind` line of a frontend is in clear on port 81",
            ),
            (
                "tls :8080",
                "4:5 no `bind` line of a frontend has `ssl` on port 8080",
            ),
        ],
    );
}

/// As routers of clusters have it: a map chooses the backend, and TLS ends at a socket of the host's own.
const CHAINED: &str = "\
defaults
    mode http
frontend public
    bind :80
    use_backend %[base,map_reg(/etc/routes.map)]
    default_backend none
frontend public_ssl
    mode tcp
    bind :443
    use_backend be_sni if { req.ssl_sni -m found }
backend be_sni
    mode tcp
    server fe_sni unix@/run/sni.sock send-proxy
frontend fe_sni
    bind unix@/run/sni.sock ssl crt site.pem accept-proxy
    default_backend app
backend none
    errorfile 503 /etc/503.http
backend app
    server a 192.0.2.1:80
";

#[test]
fn what_haproxy_s_maps_choose_is_not_guessed() {
    let source = source("haproxy.cfg", CHAINED);
    must_be(
        &|ask| haproxy::asked(&source, ask),
        &[
            (
                "",
                ":80 | frontend public | backend none | does what the configuration alone does not say",
            ),
            (
                "tls",
                "unix@/run/sni.sock | frontend fe_sni | backend app | passes it on",
            ),
        ],
    );
}

/// A role that answers from files is looked for among files first.
#[test]
fn the_role_counts_where_nothing_is_named() {
    let conf = "events { }\nhttp {\n    server { listen 80; location / { proxy_pass http://192.0.2.1; } }\n    \
                server { listen 81; root /srv; }\n    server { listen 82; return 204; }\n}\n";
    let source = source("nginx.conf", conf);
    must_be(
        &|ask| nginx::asked(&source, ask),
        &[
            ("", "80 | server | location / | passes it on"),
            ("files", "81 | server | - | answers from files"),
            (":82 files", "82 | server | - | returns 204"),
        ],
    );
}

/// What is in files that are not read is said, where nothing else is there.
#[test]
fn listeners_that_envoy_discovers_are_named() {
    let text =
        "dynamic_resources: {lds_config: {path_config_source: {path: /etc/envoy/lds.yaml}}}\n";
    let source = source("envoy.yaml", text);
    let error = document::asked(&source, Dialect::Envoy, &ask("")).unwrap_err();
    must_have(
        error.hint.unwrap(),
        &["listeners of `lds_config` are not read"],
    );
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
              domains: [shop.example, "*.shop.example"]
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
    let source = source("envoy.yaml", ENVOY);
    let look_up = |ask: &AskSpec| document::asked(&source, Dialect::Envoy, ask);
    must_be(
        &look_up,
        &[
            (
                "",
                "0.0.0.0:8080 | virtual host any | route with prefix / | passes it on",
            ),
            (
                ":8080 /h",
                "0.0.0.0:8080 | virtual host any | route with prefix / | passes it on",
            ),
            (
                ":8080 /health",
                "0.0.0.0:8080 | virtual host any | route with path /health | returns 200",
            ),
            (
                ":8080 /v1/x",
                "0.0.0.0:8080 | virtual host any | route | passes it on",
            ),
            (
                ":8080 shop.example /api/x",
                "0.0.0.0:8080 | virtual host shop | route with path_separated_prefix /api | passes it on",
            ),
            (
                ":8080 a.shop.example /blocked",
                "0.0.0.0:8080 | virtual host shop | route with prefix /blocked | returns 403",
            ),
            (
                ":8080 shop.example /apix",
                "42:15 a request for `/apix` with the host `shop.example` at 0.0.0.0:8080: virtual host shop has no route for it",
            ),
            (
                ":80",
                "0.0.0.0:80 | virtual host all | route with prefix / | redirects",
            ),
            (":9000", "0.0.0.0:9000 | - | - | shows statistics or health"),
            (
                "tls a.example",
                "0.0.0.0:443 | virtual host of-a | route with prefix / | passes it on",
            ),
            (
                "tls b.example",
                "0.0.0.0:443 | virtual host of-others | route with prefix / | passes it on",
            ),
            // A copy opens its first chain to any name.
            (
                "tls",
                "0.0.0.0:443 | virtual host of-a | route with prefix / | passes it on",
            ),
            (
                "tls :443 c.other",
                "47:5 a request for `/` with the host `c.other` at 0.0.0.0:443 (TLS): no filter chain takes the name `c.other`",
            ),
        ],
    );
    let found = look_up(&ask(":8080 shop.example /api/x"))
        .unwrap()
        .remove(0);
    let pointer = "/static_resources/listeners/2/filter_chains/0/filters/0/typed_config/route_config/virtual_hosts/1";
    assert_eq!(found.server.unwrap().pointer, pointer);
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
  "plain": {"listen": [":8080"], "routes": [{"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:80"}]}]}]}
}}}}
"#;

#[test]
fn caddy_chooses_by_its_routes() {
    let source = source("caddy.json", CADDY);
    must_be(
        &|ask| document::asked(&source, Dialect::Caddy, ask),
        &[
            ("", ":8080 | server plain | route | passes it on"),
            (":80", ":80 | server redirects | route | redirects"),
            (
                "tls shop.example",
                ":443 | server site | route | passes it on",
            ),
            (
                "tls shop.example /static/a",
                ":443 | server site | route for /static/* *.css | answers from files",
            ),
            (
                "tls :443 shop.example /metrics",
                ":443 | server site | route for /metrics | shows statistics or health",
            ),
            (
                "tls a.wild.example",
                ":443 | server site | route for *.wild.example | returns 200",
            ),
            (
                "tls :443 a.b.wild.example",
                "5:11 a request for `/` with the host `a.b.wild.example` at :443 (TLS): server site has no route for it",
            ),
            (
                "tls not.example /y",
                ":443 | server site | route for *.wild.example | returns 200",
            ),
            ("tls :443 not.example /x", "5:11 a request for `/x`…"),
            (":81", "14:24 no server is in clear on port 81"),
        ],
    );
}

/// A load that asks for what is not there on purpose says so by what it expects.
#[test]
fn nothing_need_be_there_where_404_is_right() {
    let source = source("envoy.yaml", ENVOY);
    let mut missing = ask(":8080 shop.example /none");
    assert!(document::asked(&source, Dialect::Envoy, &missing).is_err());
    missing.requests[0].may_miss = true;
    assert!(document::asked(&source, Dialect::Envoy, &missing).is_ok());
}

/// The proxy's port is for loads that name none, and of loads over TLS only where TLS is spoken.
#[test]
fn the_port_of_the_proxy_is_weaker_than_the_load_s() {
    let source: Source = source("haproxy.cfg", HAPROXY);
    let look_up = |text: &str, port: u16| {
        let ask = AskSpec {
            proxy_port: Some(port),
            ..ask(text)
        };
        haproxy::asked(&source, &ask).map(|asked| asked[0].listener.address.clone())
    };
    for (text, port, expected) in [
        ("api.example", 9000, ":9000"),
        (":8080", 8404, ":8080"),
        ("", 8404, ":8404"),
        ("tls", 8080, ":443"),
        ("", 443, ":8080"),
    ] {
        assert_eq!(
            look_up(text, port).as_deref(),
            Ok(expected),
            "{text} {port}"
        );
    }
    must_have(
        look_up("", 9000).unwrap_err(),
        &["no rule gives it a backend"],
    );
    must_have(look_up("", 81).unwrap_err(), &["on port 81"]);
}
