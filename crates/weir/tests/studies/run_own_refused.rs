//! Tests of users' configurations that cannot be run: the error has the position in the user's file and the proxy's own
//! words, and weir never waits forever.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use weir_testkit::own::{User, study};
use weir_testkit::program::{Ended, HasAll, wait_until};
use weir_testkit::sandbox::{Sandbox, kill};

const SITE: &str = "server {\n    listen 18080;\n    location / {\n        proxy_pass http://192.0.2.1;\n    \
                    }\n}\n";
const MAIN: &str = "worker_processes 1;\nevents {}\nhttp {\n    include site.conf;\n}\n";

const FILES: [(&str, &str); 2] = [("nginx.conf", MAIN), ("site.conf", SITE)];

/// Returns a study of the configuration at `main`, with one arm that has `settings`.
fn text(kind: &str, main: &Path, more: &str, settings: &str) -> String {
    let proxy = format!("{{kind: {kind}, configuration: {}{more}}}", main.display());
    let arm = format!("- {{name: other, settings: {{{settings}}}}}\n");
    study(&proxy, &arm)
}

/// Checks that a study of these files, the first of which is the main one, is refused as bad input, with these words.
/// `~` stands for the user's folder.
#[track_caller]
fn assert_refused(
    kind: &str,
    files: &[(&str, &str)],
    (more, settings): (&str, &str),
    words: &[&str],
) {
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, files);
    let folder = user.folder.display().to_string();
    let words: Vec<String> = words.iter().map(|text| text.replace('~', &folder)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let study = text(kind, &user.path(files[0].0), more, settings);
    sandbox.run(&study).end().refused(&words);
    sandbox.assert_clean();
    user.assert_untouched();
    assert!(!sandbox.run_folder().exists(), "what was begun is taken back");
}

#[test]
fn files_that_cannot_be_read_as_nginx_s() {
    let gzip_first = format!("gzip on;\n{MAIN}");
    #[rustfmt::skip]
    let rows: [(&str, Option<&str>, &[&str]); 4] = [
        (MAIN, None, &["arm `baseline`: ~/nginx.conf:4:13: cannot read ~/site.conf: No such file"]),
        (MAIN, Some("include nginx.conf;\n"),
         &["~/site.conf:1:9: files include each other in a cycle", "~/nginx.conf → "]),
        (MAIN, Some("server { listen 18080;\n"), &["~/site.conf:1:"]),
        (&gzip_first, Some(SITE), &["~/nginx.conf:1:1: ", "`gzip`"]),
    ];
    for (main, site, words) in rows {
        let files = [("nginx.conf", main)].into_iter();
        let files: Vec<_> = files.chain(site.map(|text| ("site.conf", text))).collect();
        assert_refused("nginx", &files, ("", "gzip: on"), words);
    }
}

#[test]
fn a_file_that_is_no_utf_8() {
    for kind in ["nginx", "haproxy", "envoy", "caddy"] {
        let sandbox = Sandbox::new();
        let user = User::new(&sandbox, &[]);
        let main = user.path("main.json");
        fs::write(&main, b"# fa\xe7ade\n").expect("own folder");
        let ended = sandbox.run(&text(kind, &main, "", "rlimit_nofile: 999"));
        let place_of_it = format!("{}:1:5: ", main.display());
        let words = [&place_of_it, "0xe7 is not UTF-8", "\nhint: "];
        ended.end().refused(&words);
        sandbox.assert_clean();
    }
}

/// Tests FIFOs, because opening one waits for a writer.
#[test]
fn a_fifo_is_not_waited_for() {
    for (kind, name) in [
        ("nginx", "nginx.conf"),
        ("haproxy", "haproxy.cfg"),
        ("envoy", "envoy.yaml"),
        ("caddy", "caddy.json"),
        ("caddy", "Caddyfile"),
    ] {
        let sandbox = Sandbox::new();
        let user = User::new(&sandbox, &[]);
        let main = user.path(name);
        let mkfifo = Command::new("mkfifo").arg(&main).status();
        assert!(mkfifo.is_ok_and(|status| status.success()));
        let ended = sandbox.run(&text(kind, &main, "", "rlimit_nofile: 999"));
        ended.end().refused(&[name, "not a regular file"]);
        sandbox.assert_clean();
    }
}

#[test]
fn what_a_user_s_nginx_has_no_place_for() {
    let words = ["arm `other`: ~/site.conf:4:9: ", "`origin_keepalive_requests`", "\nhint: "];
    assert_refused("nginx", &FILES, ("", "origin_keepalive_requests: 8"), &words);
    let words = [
        "~/site.conf:2:5: no HTTP server listens in clear on port 1",
        "hint: listeners: 18080 at ~/site.conf:2",
    ];
    assert_refused("nginx", &FILES, (", port: 1", "gzip: on"), &words);
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, &FILES);
    let study = text("nginx", &user.path("nginx.conf"), "", "gzip: on");
    let ended = sandbox.run(&study.replace("timeout: 10s", "tls: true")).end();
    ended.refused(&["site.conf:2:5: no HTTP server listens with TLS"]);
    sandbox.assert_clean();
}

#[test]
fn what_a_proxy_refuses_is_told_of_the_user_s_file() {
    let plain = ("", "rlimit_nofile: 999");
    let site = format!("# a shop\ngzip perhaps;\n{SITE}");
    assert_refused(
        "nginx",
        &[("nginx.conf", MAIN), ("site.conf", &site)],
        ("", "gzip: on"),
        &[
            "arm `baseline`: nginx refuses the configuration ~/nginx.conf:",
            "invalid value \"perhaps\" in \"gzip\" directive, it must be \"on\" or \"off\" in ~/site.conf:2",
            "hint: this is the proxy's own output about your configuration; line numbers are those of your file",
        ],
    );
    let file = "global\n    maxconn 10\nfrontend web\n    bind :18080\n    mode perhaps\n";
    let words = ["[~/haproxy.cfg:5]", "unknown proxy mode 'perhaps'"];
    assert_refused("haproxy", &[("haproxy.cfg", file)], plain, &words);
    let file = ":18080 {\n\tfrobnicate\n}\n";
    assert_refused("caddy", &[("Caddyfile", file)], plain, &["~/Caddyfile", "Caddyfile:2"]);
    let file = r#"{"apps": {"http": {"servers": {"a": {"listen": [":1"], "x": 1}}}}}"#;
    assert_refused("caddy", &[("caddy.json", file)], plain, &["~/caddy.json", "unknown field"]);
    let file = ":18080 {\n\treverse_proxy 192.0.2.1:80\n}\n";
    let words = [
        "arm `other`: ",
        "`read_timeout` cannot be changed in a Caddyfile",
        "hint: make JSON of it and name that file: caddy adapt --pretty --config ",
    ];
    assert_refused("caddy", &[("Caddyfile", file)], ("", "read_timeout: 5s"), &words);
    let words = ["cannot be started with your own configuration"];
    assert_refused("httpd", &[("httpd.conf", "Listen 18080\n")], plain, &words);
}

/// Checks that the error comes before any program has read the configuration.
#[test]
fn what_could_ask_somebody_else_is_refused_where_it_stands() {
    let site = format!("# a shop\n  frobnicate on;\n{SITE}");
    assert_refused(
        "nginx",
        &[("nginx.conf", MAIN), ("site.conf", &site)],
        ("", "gzip: on"),
        &[
            "arm `baseline`: ~/site.conf:2:3: weir does not know what `frobnicate` contacts or writes",
            "\nhint: name a copy of your configuration without it in the study",
        ],
    );
    let file = ":18080 {\n\tacme_server\n\treverse_proxy 192.0.2.1:80\n}\n";
    let words = ["~/Caddyfile:2:2: weir does not know what `acme_server` contacts or writes"];
    let plain = ("", "rlimit_nofile: 999");
    assert_refused("caddy", &[("Caddyfile", file)], plain, &words);
}

/// A parameter that only another version has.
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
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, &FILES);
    let main = user.path("nginx.conf");
    sandbox.write("study.yaml", &text("nginx", &main, "", "keepalive_min_timeout: 5s"));
    sandbox.write("rows.yaml", ROWS);
    let ended = sandbox.call("run study.yaml --out 'a run' --parameters rows.yaml");
    let words = format!("unknown directive \"keepalive_min_timeout\" in {}:", main.display());
    ended.refused(&[
        "arm `other`: nginx refuses",
        &words,
        "\n+    keepalive_min_timeout 5s;",
        "your file with this change",
    ]);
    sandbox.assert_clean();
    user.assert_untouched();
}

/// Prevents a mix of blocks of two baselines.
#[test]
fn a_run_does_not_go_on_with_files_that_have_changed() {
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, &FILES);
    let (main, site) = (user.path("nginx.conf"), user.path("site.conf"));
    let study = text("nginx", &main, "", "keepalive_requests: 5");
    let mut run = sandbox.run(&study.replace("duration: 2s", "duration: 6s"));
    sandbox.await_trials(&mut run, 2);
    run.signal(Signal::INT);
    run.end().with_code(130);
    let measured = sandbox.trials();

    fs::set_permissions(&site, Permissions::from_mode(0o644)).expect("own file");
    fs::write(&site, format!("# another shop\n{SITE}")).expect("own file");
    let changed = format!("cannot resume this run: {} has changed since", site.display());
    sandbox.resume().refused(&[&changed]);
    sandbox.assert_clean();
    assert_eq!(sandbox.trials(), measured);
    let copy = sandbox.read("arms/baseline/conf/site.conf");
    assert!(!copy.contains("another shop"), "{copy}");

    fs::write(&site, SITE).expect("own file");
    sandbox.resume().with_code(0);
    sandbox.assert_clean();
}

/// A proxy that checks a configuration waits for the other end of a pipe without end.
#[test]
fn a_program_that_waits_for_a_pipe_ends_with_its_weir() {
    for (signal, code) in [(Signal::TERM, Some(130)), (Signal::KILL, None)] {
        let sandbox = Sandbox::new();
        let pipe = sandbox.path("pipe");
        let status = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(status.success());
        let main = format!(
            "defaults\n    mode http\n    timeout client 9s\n    timeout server 9s\n    timeout connect 9s\n    \
             errorfile 503 {}\nfrontend f\n    bind 127.0.0.1:18080\n    default_backend b\nbackend b\n    \
             server s 192.0.2.1:80\n",
            pipe.display()
        );
        let user = User::new(&sandbox, &[("haproxy.cfg", &main)]);
        let run = sandbox.run(&text("haproxy", &user.path("haproxy.cfg"), "", "maxconn: 5000"));
        wait_until("HAProxy checks it", || find_check(run.pid()).is_some());
        let waiting = find_check(run.pid()).expect("it waits");
        run.signal(signal);
        assert_eq!(run.end_within(Duration::from_secs(30)).code, code);
        wait_until("HAProxy has ended", || !Path::new(&format!("/proc/{waiting}")).exists());
        sandbox.call("restore");
        sandbox.assert_clean();
    }
}

/// Returns the HAProxy below a process that checks a configuration.
fn find_check(parent: u32) -> Option<u32> {
    let output = Command::new("pgrep").args(["-x", "-P", &parent.to_string(), "haproxy"]).output();
    let text = String::from_utf8(output.expect("pgrep").stdout).expect("numbers");
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).find(|pid| is_check(*pid))
}

/// Returns true if a process is an HAProxy that checks a configuration.
fn is_check(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|argument| argument == b"-c")
}

#[test]
fn a_run_that_is_stopped_leaves_the_files_as_they_are() {
    for stopped in ["interrupted", "killed", "its proxy killed"] {
        let sandbox = Sandbox::new();
        let user = User::new(&sandbox, &FILES);
        let study = text("nginx", &user.path("nginx.conf"), "", "keepalive_requests: 5");
        let mut run = sandbox.run(&study.replace("duration: 2s", "duration: 60s"));
        sandbox.await_trials(&mut run, 2);
        let proxies = sandbox.proxies();
        match stopped {
            "interrupted" => run.signal(Signal::INT),
            "killed" => run.signal(Signal::KILL),
            _ => kill(sandbox.masters()[0]),
        }
        let ended = run.end();
        match stopped {
            "interrupted" => assert_eq!(ended.code, Some(130), "{ended:?}"),
            "killed" => assert_eq!(ended.code, None),
            _ => ended.with_code(1).stderr.has("ended during the run"),
        }
        sandbox.await_end_of(&proxies);
        if stopped != "killed" {
            sandbox.assert_clean();
        }
        user.assert_untouched();
    }
}

/// Runs a study with an nginx that is a script: it runs these commands in place of serving.
fn run_scripted(sandbox: &Sandbox, does: &str, duration: &str) -> Ended {
    let script = sandbox.program(
        "nginx",
        &format!(
            "#!/bin/sh\nPATH=$PATH:/usr/sbin:/sbin\nfor a; do case \"$a\" in -t|-T|-v|-V) exec nginx \
             \"$@\";; esac; done\n{does}\n"
        ),
    );
    let more = format!(", executable: {}", script.display());
    let user = User::new(sandbox, &FILES);
    let main = user.path("nginx.conf");
    let study = text("nginx", &main, &more, "keepalive_requests: 5");
    let ended = sandbox.run(&study.replace("duration: 2s", duration)).end();
    sandbox.assert_clean();
    user.assert_untouched();
    ended
}

#[test]
fn a_proxy_that_crashes_or_does_not_listen() {
    let under_load = "nginx \"$@\" & pid=$!\nsleep 4\nkill -9 $pid\nwait $pid\nexit 1";
    let late = "sleep 2\nexec nginx \"$@\"";
    let rows: [(&str, &str, i32, &[&str]); 4] = [
        ("echo 'out of luck' >&2; exit 7", "2s", 1, &["arm `baseline`: ", "out of luck"]),
        (under_load, "50s", 1, &["arm `", "what was recorded is in"]),
        (late, "2s", 0, &[]),
        ("exec sleep 100", "2s", 1, &["arm `baseline`: ", "30 s"]),
    ];
    for (does, duration, code, words) in rows {
        let sandbox = Sandbox::new();
        run_scripted(&sandbox, does, &format!("duration: {duration}")).with_code(code).says(words);
    }
}
