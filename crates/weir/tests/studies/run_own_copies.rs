//! Tests of copies of users' configurations: the parts that they keep on the real proxies, and the parts that they
//! replace, which are reported before the run and beside its answer, and refused if two arms differ in nothing else.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P384_SHA384};
use weir_testkit::own::User;
use weir_testkit::own_cases::SECURE;
use weir_testkit::program::{HasAll, flat};
use weir_testkit::sandbox::{self, Sandbox};

/// Returns a study that compares two of the user's configurations.
fn pair(kind: &str, user: &User, names: [&str; 2]) -> String {
    let [a, b] = names.map(|name| user.path(name).display().to_string());
    let load = "- {name: closed, closed: true, connections: 2, duration: 2s, timeout: 10s}";
    let proxy = format!("{{kind: {kind}, configuration: {a}}}");
    let arm = format!("- {{name: other, proxy: {{kind: {kind}, configuration: {b}}}}}\n");
    sandbox::study(&proxy, load, &format!("a/a: false\narms:\n{arm}"))
}

const NGINX: &str = "events {}\nhttp {\n    server {\n        listen 18080;\n        location / { PART }\n    }\n}\n";

const HAPROXY: &str = "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n\
                       frontend web\n    bind :18080\n    default_backend app\nbackend app\nPART\n";

const ENVOY: &str = r#"{"static_resources": {"listeners": [{"name": "web",
  "address": {"socket_address": {"address": "0.0.0.0", "port_value": 18080}},
  "filter_chains": [{"filters": [{"name": "http", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "web",
    "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
    "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"],
      "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "app"}}]}]}}}]}]}],
  "clusters": [{"name": "app", "type": "STATIC", PART "load_assignment": {"cluster_name": "app",
    "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address":
      {"address": "192.0.2.1", "port_value": 8080}}}}]}]}}]}}
"#;

const CADDY: &str = r#"{"apps": {"http": {"servers": {"web": {"listen": [":18080"], "routes": [{"handle": [
  {"handler": "reverse_proxy", "transport": {"protocol": "http" PART}, "upstreams": [{"dial": "192.0.2.1:8080"}]}]}]}}}}}
"#;

/// Pairs for each proxy: a part of one configuration and of the other, and the message about the difference.
#[rustfmt::skip]
const PAIRS: [(&str, &str, &str, [&str; 2], &str); 5] = [
    ("nginx", "nginx.conf", NGINX,
     ["proxy_pass https://192.0.2.1;", "proxy_ssl_session_reuse off; proxy_pass https://192.0.2.1;"],
     "`other` has proxy_ssl_session_reuse off (~/other/nginx.conf:5): the copy asks its origin server in clear"),
    ("haproxy", "haproxy.cfg", HAPROXY,
     ["    server a 192.0.2.1:443", "    server a 192.0.2.1:443 ssl verify none"],
     "`other` has ssl (~/other/haproxy.cfg:10), verify none (~/other/haproxy.cfg:10): the copy asks"),
    ("haproxy", "haproxy.cfg", HAPROXY,
     ["    server a 192.0.2.1:80\n    server b 192.0.2.2:80", "    server a 192.0.2.1:80"],
     "`baseline` has 2 servers (~/haproxy.cfg:9): the copy has one origin server"),
    ("envoy", "envoy.json", ENVOY,
     ["", r#""transport_socket": {"name": "envoy.transport_sockets.tls"},"#],
     "`other` has transport_socket {\"name\":\"envoy.transport_sockets.tls\"} (~/other/envoy.json:10): the copy asks"),
    ("caddy", "caddy.json", CADDY,
     ["", r#", "tls": {}"#], "`other` has transport tls {} (~/other/caddy.json:2): the copy asks"),
];

#[test]
fn arms_that_differ_in_what_copies_lose_are_refused() {
    for (kind, name, text, parts, expected) in PAIRS {
        let sandbox = Sandbox::new();
        let [baseline, changed] = parts.map(|part| text.replace("PART", part));
        let second = format!("other/{name}");
        let user = User::new(&sandbox, &[(name, &baseline), (&second, &changed)]);
        let study = pair(kind, &user, [name, &second]);
        let difference = expected.replace('~', &user.folder.display().to_string());
        let words = ["`other` and `baseline` differ in what copies lose", &difference];
        sandbox.write("study.yaml", &study);
        sandbox.call("run study.yaml --check").refused(&words);
        sandbox.run(&study).end().refused(&words);
        sandbox.assert_clean();
        user.assert_untouched();
    }
}

/// Checks that parts left out of a copy without a message count as no difference either.
#[test]
fn arms_whose_copies_are_the_same_are_refused() {
    let sandbox = Sandbox::new();
    let plain = NGINX.replace("PART", "proxy_pass http://192.0.2.1;");
    let with_folder = format!("working_directory /;\n{plain}");
    let files = ["nginx.conf", "other.conf", "again.conf"];
    let user =
        User::new(&sandbox, &[(files[0], &plain), (files[1], &with_folder), (files[2], &plain)]);
    for (second, words) in [
        (files[1], Some("`other` and `baseline` differ, but their copies are the same")),
        // An arm for its own sake is like an A/A arm.
        (files[2], None),
    ] {
        sandbox.write("study.yaml", &pair("nginx", &user, [files[0], second]));
        let checked = sandbox.call("run study.yaml --check");
        match words {
            Some(words) => drop(checked.refused(&[words])),
            None => drop(checked.with_code(0)),
        }
    }
}

/// Tests a difference that no list of directives contains.
#[test]
fn what_differs_in_the_originals_alone_is_said() {
    let sandbox = Sandbox::new();
    let plain = NGINX.replace("PART", "proxy_pass http://192.0.2.1;");
    let zipped =
        format!("working_directory /;\n{plain}").replace("proxy_pass", "gzip on; proxy_pass");
    let user = User::new(&sandbox, &[("nginx.conf", &plain), ("other.conf", &zipped)]);
    sandbox.write("study.yaml", &pair("nginx", &user, ["nginx.conf", "other.conf"]));
    let checked = sandbox.call("run study.yaml --check").with_code(0);
    let path = user.path("other.conf");
    checked.stdout.has(&format!(
        "the copies of `other` and `baseline` are alike in what differs in the originals at working_directory ({}:1), so the comparison",
        path.display()
    ));
}

/// Checks that differences are reported before the run and beside its answer; the common parts are still compared.
#[test]
fn what_copies_have_otherwise_is_said() {
    let sandbox = Sandbox::new();
    let with_filter = NGINX.replace("PART", "sub_filter a b; proxy_pass https://192.0.2.1;");
    let twice = with_filter.replace("sub_filter", "sub_filter_once off; sub_filter");
    let user = User::new(&sandbox, &[("nginx.conf", &with_filter), ("other.conf", &twice)]);
    let study = pair("nginx", &user, ["nginx.conf", "other.conf"]);
    sandbox.write("study.yaml", &study);
    sandbox.call("run study.yaml --check").with_code(0).stdout.has_all(&[
        "  copy  your servers: weir's origin server answers in their place",
        "  copy  proxy_pass https:// (",
        "  copy  sub_filter a b (",
        "it works on responses of the study's `origin`, not on those of your servers",
    ]);
    let ended = sandbox.run(&study).end().with_code(0);
    flat(&ended.stdout).has_all(&[
        "measured on copies: your servers: weir's origin server answers in their place",
        "the copy asks its origin server in clear",
    ]);
    let report = sandbox.call("report 'a run' --format markdown").with_code(0);
    report.stdout.has("What the copies have otherwise than your configurations");
    user.assert_untouched();
}

/// Tests a listener that is reached through another one: the inner one answers with a status of its own.
#[test]
fn listeners_of_one_configuration_stay_behind_each_other() {
    const INNER: &str = "events {}\nhttp {\n    server {\n        listen 18080;\n        \
                         location / { proxy_pass http://127.0.0.1:18081; }\n    }\n    server {\n        \
                         listen 18081;\n        location / { return 204; }\n    }\n}\n";
    let caddy = CADDY.replace("192.0.2.1:8080", "localhost:18081").replace("PART", "").replace(
        "}]}]}}}}}",
        r#"}]}]}, "inner": {"listen": [":18081"], "routes": [{"handle": [{"handler": "static_response", "status_code": 204}]}]}}}}}"#,
    );
    let envoy = ENVOY
        .replace("PART", "")
        .replace("192.0.2.1", "127.0.0.1")
        .replace("\"port_value\": 8080", "\"port_value\": 18081");
    let inner = envoy
        .split("\"listeners\": [")
        .nth(1)
        .expect("listeners")
        .split("],\n  \"clusters\"")
        .next()
        .expect("clusters")
        .replace("18080", "18081")
        .replace("\"web\"", "\"inner\"")
        .replace(r#""route": {"cluster": "app"}"#, r#""direct_response": {"status": 204}"#);
    let both = envoy.replace("],\n  \"clusters\"", &format!(", {inner}],\n  \"clusters\""));
    let haproxy = HAPROXY.replace("PART", "    server a 127.0.0.1:18081\nfrontend inner\n    bind :18081\n    http-request return status 204\n");
    for (kind, name, text) in [
        ("nginx", "nginx.conf", INNER),
        ("haproxy", "haproxy.cfg", &haproxy),
        ("envoy", "envoy.json", &both),
        ("caddy", "caddy.json", &caddy),
    ] {
        let sandbox = Sandbox::new();
        let user = User::new(&sandbox, &[(name, text)]);
        let proxy =
            format!("{{kind: {kind}, configuration: {}, port: 18080}}", user.path(name).display());
        let load = "- {name: closed, closed: true, connections: 2, duration: 2s, timeout: 10s, expect: status=204}";
        let study = sandbox::study(&proxy, load, "a/a: true\n");
        sandbox.run(&study).end().with_code(0);
        user.assert_untouched();
    }
}

/// Tests clients that accept only ECDSA: they are answered if the user's certificate has such a key.
#[test]
fn a_copy_shows_a_certificate_of_the_user_s_kind() {
    const CADDY_TLS: &str = r#"{"apps": {"tls": {"certificates": {"load_files": [
      {"certificate": "/nowhere/shop.pem", "key": "/nowhere/shop.key"}]}},
      "http": {"servers": {"web": {"listen": [":18443"], "tls_connection_policies": [{}], "routes": [{"handle": [
      {"handler": "reverse_proxy", "upstreams": [{"dial": "192.0.2.1:8080"}]}]}]}}}}}
    "#;
    let kinds = SECURE.into_iter().filter(|(kind, ..)| *kind != "caddy");
    for (kind, name, text) in kinds.chain([("caddy", "caddy.json", CADDY_TLS)]) {
        let sandbox = Sandbox::new();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).expect("a key");
        let params = CertificateParams::new(vec!["shop.example".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        let there = sandbox.path("user/shop.pem").display().to_string();
        let readable = text.replace("/nowhere/shop.pem", &there);
        let user = User::new(&sandbox, &[(name, &readable), ("shop.pem", &certificate)]);
        let proxy =
            format!("{{kind: {kind}, configuration: {}, port: 18443}}", user.path(name).display());
        let load = "- {name: closed, closed: true, connections: 2, duration: 3s, timeout: 10s, \
                    tls: {ciphers: [ECDHE-ECDSA-AES128-GCM-SHA256]}, host: shop.example}";
        let study = sandbox::study(&proxy, load, "a/a: true\n");
        sandbox.run(&study).end().with_code(0);
        let run = sandbox.records();
        let answered: u64 = run.trials().map(|trial| trial.status_classes[2]).sum();
        assert!(answered > 0, "{kind} answered nothing");
    }
}

/// Starts a user's server that answers with a status of its own, on a free port of the loopback.
fn own_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer(connection));
        }
    });
    address
}

fn answer(connection: TcpStream) {
    let mut to = connection.try_clone().expect("a connection");
    let lines = BufReader::new(connection).lines().map_while(Result::ok);
    for _ in lines.filter(String::is_empty) {
        let written = to.write_all(b"HTTP/1.1 203 Own\r\nContent-Length: 0\r\n\r\n");
        if written.is_err() {
            return;
        }
    }
}

#[test]
fn a_server_of_the_user_s_may_stay() {
    let sandbox = Sandbox::new();
    let text = NGINX.replace("PART", "proxy_pass http://192.0.2.1;");
    let user = User::new(&sandbox, &[("nginx.conf", &text)]);
    let main = user.path("nginx.conf").display().to_string();
    let load = "- {name: closed, closed: true, connections: 2, duration: 2s, timeout: 10s, expect: status=203}";
    let address = own_server();
    let more = format!("a/a: true\norigin: {{address: '{address}'}}\n");
    let proxy = format!("{{kind: nginx, configuration: {main}}}");
    let study = sandbox::study(&proxy, load, &more);
    let ended = sandbox.run(&study).end().with_code(0);
    let reason = format!("your servers: the one at {address} answers for all");
    flat(&ended.stdout).has(&reason);
    let apart = format!("{study}network: {{kind: namespaces}}\n");
    sandbox.write("study.yaml", &apart);
    sandbox.call("run study.yaml --check").refused(&["no route to the `address` of the origin"]);
}
