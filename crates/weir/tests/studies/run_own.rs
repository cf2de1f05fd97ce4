//! Tests of `weir run` with configurations that users wrote, with the real proxies: each arm runs a copy with its
//! settings in it, and no file of the user's is changed. `corpus.rs` takes many of them on to the reverted patch.

use std::fs;

use weir_model::record::ProxyRecord;
use weir_record::Run;
use weir_testkit::own::{User, study};
use weir_testkit::own_cases::{HAPROXY, NGINX, SECURE};
use weir_testkit::program::{HasAll, flat};
use weir_testkit::sandbox::{Sandbox, proxy_of};

/// Returns the record of an arm's proxy.
fn of_arm<'r>(run: &'r Run, arm: &str) -> &'r ProxyRecord {
    proxy_of(run, arm).expect("the arm ran")
}

/// Checks that levels are read back from the file or, if the file has none, from the program's default.
#[test]
fn a_level_that_the_file_has_already_is_inert_and_one_that_it_changes_is_not() {
    let sandbox = Sandbox::new();
    let text = "events {}\nhttp {\n    gzip on;\n    server {\n        listen 18080;\n        \
                location / { proxy_pass http://192.0.2.1; }\n    }\n}\n";
    let user = User::new(&sandbox, &[("nginx.conf", text)]);
    let main = user.path("nginx.conf");
    let proxy = format!("{{kind: nginx, configuration: {}}}", main.display());
    let arms = "- {name: on, settings: {gzip: on}}\n\
                - {name: off, settings: {gzip: off}}\n\
                - {name: nodelay, settings: {tcp_nodelay: on}}\n";
    let text = study(&proxy, arms).replace("duration: 2s", "duration: 3s");
    sandbox.run(&text).end().with_code(0);
    let run = sandbox.records();
    for (arm, expected) in [("on", &["gzip"][..]), ("off", &[]), ("nodelay", &["tcp_nodelay"])] {
        let inert: Vec<String> =
            of_arm(&run, arm).inert.iter().map(|inert| inert.id.clone()).collect();
        assert_eq!(inert, expected, "{arm}");
    }
    user.assert_untouched();
}

/// Checks the test of settings that keep connections to the origin server, by the number of opened ones: if an unknown
/// part of the file closes them, the change did not take effect.
#[test]
fn a_change_that_keeps_nothing_is_not_called_one_without_effect() {
    let map = "map $http_upgrade $kept { default upgrade; '' close; }";
    assert!(!is_said_to_keep_nothing(map));
    // On a machine that is busy with others no block may be valid, and then nothing is said.
    let always_closes = "map $request_method $kept { default close; }";
    assert!((0..3).any(|_| is_said_to_keep_nothing(always_closes)));
}

fn is_said_to_keep_nothing(map: &str) -> bool {
    let sandbox = Sandbox::new();
    let text = format!(
        "events {{}}\nhttp {{\n    {map}\n    server {{\n        listen 18080;\n        location / {{\n            \
         proxy_pass http://192.0.2.1:3000;\n            proxy_set_header Host $host;\n            \
         proxy_set_header Upgrade $http_upgrade;\n            proxy_set_header Connection $kept;\n        \
         }}\n    }}\n}}\n"
    );
    let user = User::new(&sandbox, &[("nginx.conf", &text)]);
    let main = user.path("nginx.conf");
    let proxy = format!("{{kind: nginx, configuration: {}}}", main.display());
    let arms = "- {name: kept, settings: {origin_keepalive: 16}}\n";
    let ended = sandbox.run(&study(&proxy, arms)).end().with_code(0);
    let run = sandbox.records();
    assert_eq!(of_arm(&run, "kept").effective["origin_keepalive"], "16");
    let reason = "origin_keepalive = 16 did not take effect in kept";
    let is_said = flat(&ended.stdout).contains(reason);
    let json = sandbox.call("report 'a run' --format json").with_code(0);
    assert_eq!(json.stdout.contains("\"ineffective\""), is_said);
    user.assert_untouched();
    is_said
}

/// Uses the lab's certificate in place of the user's, which the client would not trust, and which weir need not be able
/// to read.
#[test]
fn a_load_over_tls_asks_the_user_s_tls_listener() {
    // Each for some seconds, and none is asked how quick it is.
    std::thread::scope(|scope| {
        for (kind, name, text) in SECURE {
            scope.spawn(move || asks_the_tls_listener(kind, name, text));
        }
    });
}

fn asks_the_tls_listener(kind: &str, name: &str, text: &str) {
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, &[(name, text)]);
    let port = if kind == "caddy" { 443 } else { 18443 };
    let main = user.path(name);
    let proxy = format!("{{kind: {kind}, configuration: {}, port: {port}}}", main.display());
    let text = study(&proxy, "")
        .replace("arms:\n", "")
        .replace("a/a: false", "a/a: true")
        .replace("timeout: 10s", "timeout: 10s, tls: true")
        .replace("50ms", "250ms")
        .replace("duration: 2s", "duration: 6s");
    sandbox.run(&text).end().with_code(0);
    sandbox.assert_clean();
    user.assert_untouched();
    let run = sandbox.records();
    let answered: u64 = run.trials().map(|trial| trial.status_classes[2]).sum();
    assert!(answered > 0, "{kind} answered nothing over TLS");
    let patch = fs::read_to_string(sandbox.run_folder().join("arms/baseline/patch.diff"));
    assert_eq!(patch.expect("it is there"), "", "{kind}");
}

/// Checks that workers and sockets then belong to weir's user, and that no part of the user's file needs root.
#[test]
fn root_is_not_needed() {
    for case in [&NGINX, &HAPROXY] {
        let sandbox = Sandbox::new();
        let user = User::new(&sandbox, case.files);
        let (id, level) = case.setting;
        let main = user.path(case.main);
        let proxy = format!("{{kind: {}, configuration: {}}}", case.kind, main.display());
        let text = study(&proxy, &format!("- {{name: changed, settings: {{{id}: {level}}}}}\n"));
        sandbox.run_without_root(&text).with_code(0);
        sandbox.assert_clean();
        user.assert_untouched();
        let run = sandbox.records();
        assert_eq!(of_arm(&run, "changed").effective[id], level);
        assert_ne!(of_arm(&run, "baseline").effective[id], level);
        let report = sandbox.call("report 'a run' --format markdown").with_code(0);
        report.stdout.has_all(&[&main.display().to_string(), id]);
    }
}
