//! Tests of demands on clients in users' configurations: a load that does not meet them is refused before anything is
//! started, and one that meets them is answered. Also tests of requests through several frontends.

use weir_record::Run;
use weir_testkit::own::User;
use weir_testkit::own_cases::SECURE;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::{self, Sandbox, proxy_of};
use weir_testkit::secure::Authority;

/// Ways in which each of [`SECURE`] demands certificates: a part of its text, its replacement, and words of the error.
const DEMANDS: [(&str, &str, [&str; 2]); 4] = [
    (
        "        location /",
        "        ssl_client_certificate AUTHORITY;\n        ssl_verify_client on;\n        location /",
        ["nginx.conf:8:9: ", "(`ssl_verify_client on`)"],
    ),
    (
        "strict-sni",
        "strict-sni verify required ca-file AUTHORITY",
        ["haproxy.cfg:7:54: ", "(`verify required`)"],
    ),
    (
        r#""common_tls_context": {"#,
        r#""require_client_certificate": true,
  "common_tls_context": {"validation_context": {"trusted_ca": {"filename": "AUTHORITY"}}, "#,
        ["envoy.json:9:33: ", "(`require_client_certificate`)"],
    ),
    (
        "shop.example {\n",
        "shop.example {\n    tls {\n        client_auth {\n            mode require_and_verify\n            \
         trusted_ca_cert_file AUTHORITY\n        }\n    }\n",
        ["Caddyfile:4:13: ", "(`client_authentication: require_and_verify`)"],
    ),
];

#[test]
fn a_certificate_that_clients_have_to_show_is_asked_of_the_load_beforehand() {
    // Each for some seconds, and none is asked how quick it is.
    std::thread::scope(|scope| {
        for ((kind, name, text), (from, to, words)) in SECURE.into_iter().zip(DEMANDS) {
            scope.spawn(move || must_be_shown(kind, (name, &text.replacen(from, to, 1)), words));
        }
    });
}

fn must_be_shown(kind: &str, (name, text): (&str, &str), [at, demand]: [&str; 2]) {
    let authority = Authority::new();
    let sandbox = Sandbox::new();
    let demanding = text.replace("AUTHORITY", &authority.file());
    let user = User::new(&sandbox, &[(name, &demanding)]);
    let identity = authority.issue(|_| {});
    let (certificate, key) = (&identity.certificate, &identity.key);
    let shown = format!("{{cert: {certificate}, key: {key}}}");
    let [without, with] = ["true", &shown].map(|tls| {
        let proxy = format!("{{kind: {kind}, configuration: {}}}", user.path(name).display());
        let load = format!(
            "- {{name: closed, closed: true, connections: 2, duration: 2s, timeout: 10s, host: shop.example,\n   tls: {tls}}}"
        );
        sandbox::study(&proxy, &load, "a/a: true\n")
    });
    let demand_words =
        format!("clients have to show a certificate {demand}, and the load has none");
    let words = [at, &demand_words, "hint: give the load one: "];
    is_refused(&sandbox, &without, &words);

    sandbox.run(&with).end().with_code(0);
    sandbox.assert_clean();
    user.assert_untouched();
    must_have_answered(&sandbox.records(), kind);
}

#[track_caller]
fn is_refused(sandbox: &Sandbox, study: &str, words: &[&str]) {
    sandbox.write("study.yaml", study);
    sandbox.call("run study.yaml --check").refused(words);
    sandbox.run(study).end().refused(words);
    assert!(!sandbox.run_folder().exists(), "nothing was begun");
    sandbox.assert_clean();
}

#[track_caller]
fn must_have_answered(run: &Run, proxy: &str) {
    let answered: u64 = run.trials().map(|trial| trial.status_classes[2]).sum();
    let classes = run.trials().map(|trial| trial.status_classes);
    let all: u64 = classes.map(|classes| classes.iter().sum::<u64>()).sum();
    assert!(answered > 0 && answered == all, "{proxy}: {answered} of {all}");
}

/// Tests listeners that speak only HTTP/2 without TLS, which a load could otherwise only detect by a request.
#[test]
fn http2_alone_in_clear_is_refused_beforehand() {
    let envoy = include_str!("../data/own-envoy.yaml")
        .replace("stat_prefix: web", "codec_type: HTTP2\n          stat_prefix: web");
    for (kind, name, text, words) in [
        (
            "nginx",
            "nginx.conf",
            "events {}\nhttp {\n    server {\n        listen 18080 http2;\n        \
             location / { grpc_pass grpc://192.0.2.1:50051; }\n    }\n}\n",
            ["nginx.conf:4:22: ", "(`listen 18080 http2`)"],
        ),
        (
            "haproxy",
            "haproxy.cfg",
            "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n\
             listen web\n    bind :18080 proto h2\n    server one 192.0.2.1:50051 proto h2\n",
            ["haproxy.cfg:7:17: ", "(`proto h2`)"],
        ),
        ("envoy", "envoy.yaml", &envoy, ["envoy.yaml:12:23: ", "(`codec_type: HTTP2`)"]),
    ] {
        let sandbox = Sandbox::new();
        let user = User::new(&sandbox, &[(name, text)]);
        let proxy = format!("{{kind: {kind}, configuration: {}}}", user.path(name).display());
        let load = "- {name: closed, closed: true, connections: 2, duration: 2s, timeout: 10s}";
        let [at, says] = words;
        let reason = format!("it speaks only HTTP/2 {says}, and loads speak HTTP/1.1");
        is_refused(
            &sandbox,
            &sandbox::study(&proxy, load, "a/a: true\n"),
            &[at, &reason, "hint: name another `port` or `host`"],
        );
        user.assert_untouched();
    }
}

/// A configuration like those of clusters' routers: a frontend selects the server in TCP mode, and TLS ends at a local
/// socket.
const CHAIN: &str = "\
defaults
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend outer
    mode tcp
    bind :18443
    tcp-request inspect-delay 5s
    tcp-request content accept if { req.ssl_hello_type 1 }
    use_backend be_shop if { req.ssl_sni -i shop.example }
backend be_shop
    mode tcp
    server fe_shop unix@/run/shop.sock send-proxy-v2
frontend fe_shop
    mode http
    bind unix@/run/shop.sock ssl crt /nowhere/shop.pem accept-proxy
    timeout client 20s
    # Nobody is to come in from the side.
    http-request deny deny_status 403 unless { fc_rcvd_proxy }
    default_backend app
backend app
    mode http
    server one 192.0.2.1:8080
";

#[test]
fn a_load_over_tls_goes_through_the_frontend_that_chooses_by_name() {
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, &[("haproxy.cfg", CHAIN)]);
    let main = user.path("haproxy.cfg").display().to_string();
    let proxy = format!("{{kind: haproxy, configuration: {main}}}");
    let load = "- {name: shop, closed: true, connections: 2, duration: 2s, timeout: 10s, tls: true, host: shop.example}";
    let arms = "a/a: false\narms:\n- {name: changed, settings: {http_reuse: always}}\n";
    let study = sandbox::study(&proxy, load, arms);
    let line = format!(
        "shop: :18443 over TLS ({main}:7): through frontend outer ({main}:5): frontend fe_shop ({main}:14), \
         backend app ({main}:21), passes it on"
    );
    sandbox.write("study.yaml", &study);
    sandbox.call("run study.yaml --check").with_code(0).stdout.has_all(&[&line]);
    sandbox.run(&study).end().with_code(0).stderr.has_all(&[&line]);
    sandbox.assert_clean();
    user.assert_untouched();
    let run = sandbox.records();
    must_have_answered(&run, "haproxy");
    // What is in force is that of the frontend that speaks HTTP.
    let effective = &proxy_of(&run, "changed").expect("the arm ran").effective;
    assert_eq!(effective["timeout_client"], "20s");
    let report = sandbox.call("report 'a run' --format markdown").with_code(0);
    report.stdout.has_all(&["through frontend outer ("]);
}
