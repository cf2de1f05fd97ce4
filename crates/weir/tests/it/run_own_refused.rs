//! Users' configurations that cannot be run: the place in the user's file, the proxy's own words, and
//! never a wait without end.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;

use crate::place::Place;
use crate::program::{Ended, HasAll, Running};
use crate::run_own::{User, study};

const SITE: &str = "server {\n    listen 18080;\n    location / {\n        proxy_pass http://192.0.2.1;\n    \
                    }\n}\n";
const MAIN: &str = "worker_processes 1;\nevents {}\nhttp {\n    include site.conf;\n}\n";

/// A study of what is at `main`, with one arm that has `settings`.
fn text(kind: &str, main: &Path, more: &str, settings: &str) -> String {
    let proxy = format!("{{kind: {kind}, configuration: {}{more}}}", main.display());
    study(
        &proxy,
        &format!("- {{name: other, settings: {{{settings}}}}}\n"),
    )
}

/// Runs nginx on some files, the first of which is the main one, and looks at what is left.
fn ended(place: &Place, files: &[(&str, &str)], more: &str, settings: &str) -> Ended {
    let user = User::new(place, files);
    let text = text("nginx", &user.path(files[0].0), more, settings);
    let ended = place.run(&text).end();
    place.assert_clean();
    user.assert_untouched();
    ended
}

/// It must be refused as bad input, with these words. `~` stands for the user's folder.
#[track_caller]
fn refused(files: &[(&str, &str)], more: &str, settings: &str, words: &[&str]) {
    let place = Place::new();
    let folder = place.path("user").display().to_string();
    let ended = ended(&place, files, more, settings);
    let words: Vec<String> = words.iter().map(|it| it.replace('~', &folder)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    ended.refused(&words);
    assert!(!place.run_folder().exists(), "what was begun is taken back");
}

#[test]
fn files_that_cannot_be_read_as_nginx_s() {
    let gzip = "gzip: on";
    refused(
        &[("nginx.conf", MAIN)],
        "",
        gzip,
        &["arm `baseline`: ~/nginx.conf:4:13: cannot read ~/site.conf: No such file"],
    );
    refused(
        &[("nginx.conf", MAIN), ("site.conf", "include nginx.conf;\n")],
        "",
        gzip,
        &[
            "~/site.conf:1:9: files include each other in a circle",
            "~/nginx.conf → ",
        ],
    );
    refused(
        &[
            ("nginx.conf", MAIN),
            ("site.conf", "server { listen 18080;\n"),
        ],
        "",
        gzip,
        &["~/site.conf:1:"],
    );
    refused(
        &[
            ("nginx.conf", &format!("gzip on;\n{MAIN}")),
            ("site.conf", SITE),
        ],
        "",
        gzip,
        &["~/nginx.conf:1:1: ", "`gzip`"],
    );
}

#[test]
fn a_file_that_is_no_utf_8() {
    for kind in ["nginx", "haproxy", "envoy", "caddy"] {
        let place = Place::new();
        let user = User::new(&place, &[]);
        let main = user.path("main.json");
        fs::write(&main, b"# fa\xe7ade\n").expect("own folder");
        let ended = place
            .run(&text(kind, &main, "", "rlimit_nofile: 999"))
            .end();
        let place_of_it = format!("{}:1:5: ", main.display());
        ended.refused(&[&place_of_it, "0xe7 is not UTF-8", "\nhint: "]);
        place.assert_clean();
    }
}

#[test]
fn a_setting_that_the_file_has_no_place_for() {
    let files = [("nginx.conf", MAIN), ("site.conf", SITE)];
    let words = [
        "arm `other`: ~/site.conf:4:9: ",
        "`origin_keepalive`",
        "\nhint: ",
    ];
    refused(&files, "", "origin_keepalive: 8", &words);
}

#[test]
fn a_listener_that_is_not_there() {
    let files = [("nginx.conf", MAIN), ("site.conf", SITE)];
    let words = [
        "~/nginx.conf:1:1: no HTTP server listens in clear at port 1",
        "hint: listeners: 18080 at ~/site.conf:2",
    ];
    refused(&files, ", port: 1", "gzip: on", &words);
    let place = Place::new();
    let user = User::new(&place, &files);
    let text = text("nginx", &user.path("nginx.conf"), "", "gzip: on");
    let ended = place.run(&text.replace("timeout: 10s", "tls: true")).end();
    ended.refused(&["nginx.conf:1:1: no HTTP server listens with TLS"]);
    place.assert_clean();
}

#[test]
fn what_nginx_refuses_is_told_of_the_user_s_file() {
    let site = format!("# a shop\nfrobnicate on;\n{SITE}");
    refused(
        &[("nginx.conf", MAIN), ("site.conf", &site)],
        "",
        "gzip: on",
        &[
            "arm `baseline`: nginx refuses the configuration ~/nginx.conf:",
            "unknown directive \"frobnicate\" in ~/site.conf:2",
            "hint: these are the proxy's own words about your configuration; lines are those of your file",
        ],
    );
}

#[test]
fn what_haproxy_refuses_is_told_of_the_user_s_file() {
    let place = Place::new();
    let file = "global\n    maxconn 10\nfrontend web\n    bind :18080\n    frobnicate on\n";
    let user = User::new(&place, &[("haproxy.cfg", file)]);
    let main = user.path("haproxy.cfg");
    let ended = place
        .run(&text("haproxy", &main, "", "rlimit_nofile: 999"))
        .end();
    let at = format!("[{}:5]", main.display());
    ended.refused(&[&at, "unknown keyword 'frobnicate'"]);
    place.assert_clean();
    user.assert_untouched();
}

#[test]
fn what_caddy_refuses_is_told_of_the_user_s_file() {
    for (name, file, words) in [
        ("Caddyfile", ":18080 {\n\tfrobnicate\n}\n", "Caddyfile:2"),
        (
            "caddy.json",
            "{\"apps\": {\"http\": {\"servers\": {\"a\": {\"listen\": [\":1\"], \"x\": 1}}}}}",
            "unknown field",
        ),
    ] {
        let place = Place::new();
        let user = User::new(&place, &[(name, file)]);
        let main = user.path(name);
        let ended = place
            .run(&text("caddy", &main, "", "rlimit_nofile: 999"))
            .end();
        ended.refused(&[&main.display().to_string(), words]);
        place.assert_clean();
        user.assert_untouched();
    }
    let place = Place::new();
    let file = ":18080 {\n\treverse_proxy 192.0.2.1:80\n}\n";
    let user = User::new(&place, &[("Caddyfile", file)]);
    let main = user.path("Caddyfile");
    let ended = place
        .run(&text("caddy", &main, "", "read_timeout: 5s"))
        .end();
    ended.refused(&[
        "arm `other`: ",
        "`read_timeout` cannot be changed in a Caddyfile",
        "hint: make JSON of it and name that file: caddy adapt --pretty --config ",
    ]);
    place.assert_clean();
    user.assert_untouched();
}

/// What another version has.
const ROWS: &str = "
proxy: nginx
parameters:
  - id: keepalive_min_timeout
    scope: proxy_directive
    level: {duration: {min: 0s, max: 1h, step: 1ms}}
    default: {level: 0s}
    why: how long kept connections are not closed for the sake of others, since nginx 1.27.4
    source: https://nginx.org/en/docs/http/ngx_http_core_module.html
    effective: {directive: {name: keepalive_min_timeout, context: http}}
    writes: [{context: http, text: \"keepalive_min_timeout {value}\"}]
";

#[test]
fn what_this_version_does_not_know_is_refused_with_the_change() {
    let place = Place::new();
    let user = User::new(&place, &[("nginx.conf", MAIN), ("site.conf", SITE)]);
    let main = user.path("nginx.conf");
    place.write(
        "study.yaml",
        &text("nginx", &main, "", "keepalive_min_timeout: 5s"),
    );
    place.write("rows.yaml", ROWS);
    let arguments = [
        "run",
        "study.yaml",
        "--out",
        "a run",
        "--parameters",
        "rows.yaml",
    ];
    let ended = Running::start(&mut place.weir(&arguments)).end();
    let words = format!(
        "unknown directive \"keepalive_min_timeout\" in {}:",
        main.display()
    );
    ended.refused(&[
        "arm `other`: nginx refuses",
        &words,
        "\n+    keepalive_min_timeout 5s;",
        "your file once this change is in it",
    ]);
    place.assert_clean();
    user.assert_untouched();
}

/// Blocks of two baselines would be mixed.
#[test]
fn a_run_does_not_go_on_with_files_that_have_changed() {
    let place = Place::new();
    let user = User::new(&place, &[("nginx.conf", MAIN), ("site.conf", SITE)]);
    let (main, site) = (user.path("nginx.conf"), user.path("site.conf"));
    let text = text("nginx", &main, "", "keepalive_requests: 5");
    let mut run = place.run(&text.replace("duration: 2s", "duration: 6s"));
    run.wait_until("a block", |_| {
        place.records_with(r#""record":"trial""#) >= 2
    });
    run.signal(Signal::INT);
    run.end().with_code(130);
    let measured = place.records_with(r#""record":"trial""#);

    fs::set_permissions(&site, Permissions::from_mode(0o644)).expect("own file");
    fs::write(&site, format!("# another shop\n{SITE}")).expect("own file");
    let changed = format!("cannot go on: {} has changed since", site.display());
    place.resume().refused(&[&changed]);
    place.assert_clean();
    assert_eq!(place.records_with(r#""record":"trial""#), measured);
    let copy = place.read("arms/baseline/conf/site.conf");
    assert!(!copy.contains("another shop"), "{copy}");

    fs::write(&site, SITE).expect("own file");
    place.resume().with_code(0);
    place.assert_clean();
}

#[test]
fn httpd_says_that_it_cannot() {
    let place = Place::new();
    let user = User::new(&place, &[("httpd.conf", "Listen 18080\n")]);
    let ended = place
        .run(&text(
            "httpd",
            &user.path("httpd.conf"),
            "",
            "rlimit_nofile: 999",
        ))
        .end();
    ended.refused(&["cannot be started with a configuration of yours"]);
    place.assert_clean();
}

/// nginx behind a script that does this in the place of running it to serve.
fn scripted(place: &Place, does: &str, duration: &str) -> Ended {
    let script = place.program(
        "nginx",
        &format!(
            "#!/bin/sh\nPATH=$PATH:/usr/sbin:/sbin\nfor a; do case \"$a\" in -t|-T|-v|-V) exec nginx \
             \"$@\";; esac; done\n{does}\n"
        ),
    );
    let more = format!(", executable: {}", script.display());
    let files = [("nginx.conf", MAIN), ("site.conf", SITE)];
    let user = User::new(place, &files);
    let main = user.path("nginx.conf");
    let text = text("nginx", &main, &more, "keepalive_requests: 5");
    let ended = place.run(&text.replace("duration: 2s", duration)).end();
    place.assert_clean();
    user.assert_untouched();
    ended
}

#[test]
fn a_proxy_that_crashes_at_its_start_has_the_last_word() {
    let place = Place::new();
    let stderr = scripted(&place, "echo 'out of luck' >&2; exit 7", "duration: 2s")
        .with_code(1)
        .stderr;
    stderr.has_all(&["arm `baseline`: ", "out of luck"]);
}

#[test]
fn a_proxy_that_crashes_under_load_ends_the_run() {
    let place = Place::new();
    let does = "nginx \"$@\" & pid=$!\nsleep 4\nkill -9 $pid\nwait $pid\nexit 1";
    let stderr = scripted(&place, does, "duration: 50s").with_code(1).stderr;
    stderr.has_all(&["arm `", "what was recorded is in"]);
}

#[test]
fn a_proxy_that_listens_late_is_waited_for() {
    let place = Place::new();
    scripted(&place, "sleep 2\nexec nginx \"$@\"", "duration: 2s").with_code(0);
}

#[test]
fn a_proxy_that_never_listens_is_given_up() {
    let place = Place::new();
    let stderr = scripted(&place, "exec sleep 100", "duration: 2s")
        .with_code(1)
        .stderr;
    stderr.has_all(&["arm `baseline`: ", "10 s"]);
}
