//! Tests of studies that `weir run` cannot run: all errors are reported, and nothing is started.

use std::fs;

use weir_testkit::program::{Ended, HasAll, Running, run};
use weir_testkit::sandbox::{Sandbox, names_in};

/// Returns a study that is right except for the given lines, `proxy` and below.
fn study(more: &str) -> String {
    format!(
        "weir: 1\nname: refused\nquestion: Is it?\n\
         loads: [{{name: closed, closed: true, connections: 2, duration: 2s}}]\n\
         blocks: {{slice: 50ms, at-least: 6}}\n{more}"
    )
}

/// Runs a study that must be refused before anything is started.
fn refused(sandbox: &Sandbox, text: &str) -> Ended {
    let ended = sandbox.run(text).end();
    assert!(!sandbox.run_folder().exists());
    sandbox.assert_clean();
    ended
}

#[test]
fn all_mistakes_at_once() {
    let sandbox = Sandbox::new();
    let text = study(
        "proxy: {kind: nginx, settings: {keepalive_requets: 5, gzip: maybe}}\n\
         arms:\n\
         - {name: one, settings: {sendfile: off}}\n\
         - {name: one, settings: {tcp_nopush: off}}\n\
         - {name: two, settings: {worker_connections: 100000}}\n\
         objektive: {metric: rate}\n",
    );
    let ended = refused(&sandbox, &text).refused(&[
        "keepalive_requests",
        "maybe",
        "objective",
        "worker_connections",
        "errors in study.yaml",
        "study.yaml:6:",
    ]);
    for line in [6, 9, 10, 11] {
        ended.stderr.has_all(&[&format!("study.yaml:{line}:")]);
    }
}

#[test]
fn a_study_that_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox
        .call("run missing.yaml")
        .refused_in_a_line(&["missing.yaml: No such file or directory"]);
    sandbox.call("run missing").refused_in_a_line(&[
        "no study called `missing`",
        "\nhint: ",
        "stock-reverse-proxy",
        "static-files",
        "same-twice",
    ]);
    sandbox.call("run .").refused_in_a_line(&["Is a directory"]);
    sandbox.write("latin.yaml", "");
    fs::write(sandbox.path("latin.yaml"), b"weir: 1\nname: \xe4\n").unwrap();
    sandbox.call("run latin.yaml").refused(&[
        "the byte 0xE4 is not UTF-8",
        "latin.yaml:2:7",
        "save the file as UTF-8",
    ]);
    assert_eq!(names_in(&sandbox.path("")), ["latin.yaml", "temporary"]);
}

#[test]
fn nginx_is_not_there() {
    let sandbox = Sandbox::new();
    let text = study("proxy: {kind: nginx, executable: /nonexistent/nginx}\n");
    refused(&sandbox, &text).refused_in_a_line(&[
        "/nonexistent/nginx was not found",
        "\nhint: install it: apt-get install nginx-light",
    ]);
    let text = study("proxy: {kind: nginx, executable: /bin/true}\n");
    refused(&sandbox, &text).refused_in_a_line(&["/bin/true does not look like nginx", "\nhint: "]);
}

/// Checks that a level which is the default of the study's own program makes no arm, whatever the default of the one on
/// PATH.
#[test]
fn defaults_are_those_of_the_executable_that_the_study_names() {
    let sandbox = Sandbox::new();
    let [old, new] = ["1.18.0", "1.22.1"].map(|version| {
        let script = format!("#!/bin/sh\necho 'nginx version: nginx/{version}' >&2\n");
        let path = sandbox.program(&format!("nginx-{version}"), &script);
        path.display().to_string()
    });
    for (program, default) in [(&old, 100), (&new, 1000)] {
        let text = study(&format!(
            "proxy: {{kind: nginx, executable: {program}}}\none-at-a-time: {{keepalive_requests: {default}}}\n"
        ));
        refused(&sandbox, &text).refused(&["`keepalive_requests` has only the baseline's level"]);
    }
    // Of two programs of a kind each may have its own.
    let text = study(&format!(
        "proxy: {{kind: nginx, executable: {old}}}\narms:\n\
         - {{name: level, settings: {{keepalive_requests: 100}}}}\n\
         - {{name: newer, proxy: {{kind: nginx, executable: {new}}}}}\n"
    ))
    .replace("duration: 2s", "duration: 3s");
    sandbox.write("two.yaml", &text);
    sandbox.call("run --check two.yaml").with_code(0);
}

/// Checks that nginx's message about a configuration is passed on verbatim.
#[test]
fn nginx_refuses_the_configuration() {
    let sandbox = Sandbox::new();
    let words = "nginx: [emerg] unknown directive \"frobnicate\" in nginx.conf:7";
    let nginx = sandbox.program(
        "nginx",
        &format!(
            "#!/bin/sh\nfor a; do [ \"$a\" = -t ] && {{ echo '{words}' >&2; exit 1; }}; done\n\
             PATH=$PATH:/usr/sbin:/sbin exec nginx \"$@\"\n"
        ),
    );
    let ended = sandbox
        .run(&study(&format!("proxy: {{kind: nginx, executable: {}}}\n", nginx.display())))
        .end()
        .with_code(1);
    ended.stderr.has_all(&[words, "hint: these are nginx's own output"]);
    assert_eq!(ended.stdout, "");
    sandbox.assert_clean();
    assert_eq!(sandbox.records_with(r#""outcome":"failed""#), 1);
}

#[test]
fn run_folders_that_cannot_be() {
    let sandbox = Sandbox::new();
    let text = study("proxy: {kind: nginx}\n");
    fs::create_dir(sandbox.run_folder()).unwrap();
    fs::write(sandbox.run_folder().join("notes.txt"), "mine").unwrap();
    sandbox.run(&text).end().refused_in_a_line(&["a run exists and is not empty", "\nhint: "]);
    assert_eq!(names_in(&sandbox.run_folder()), ["notes.txt"]);
    sandbox.write("a file", "");
    let ended = sandbox.call("run study.yaml --out 'a file/run'");
    ended.refused_in_a_line(&["/a file is not a folder", "\nhint: "]);
    let ended = sandbox.call("run study.yaml --out /proc/run");
    // A file system without any room, on every Linux.
    ended.refused_in_a_line(&["/proc: 0 MiB free, this run may need ", "\nhint: make room"]);
    sandbox.assert_clean();
}

#[test]
fn nowhere_for_temporary_files() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study("proxy: {kind: nginx}\n"));
    for (folder, why) in
        [("/nonexistent", "No such file"), ("/dev/null", "not a directory"), ("", "No such")]
    {
        let mut command = sandbox.weir(&["run", "study.yaml", "--out", "a run"]);
        command.env("TMPDIR", folder);
        let ended = Running::start(&mut command).end();
        let words = format!(
            "cannot make files in `{folder}`, which TMPDIR names for temporary files: {why}"
        );
        ended.refused(&[&words, "hint: set TMPDIR to a folder"]);
        assert!(!sandbox.run_folder().exists());
    }
}

#[test]
fn too_few_descriptors() {
    let proxies_need = "this run needs 1024 open descriptors on this host, but a process may have ";
    for (limit, connections, words) in [
        (
            1024,
            500,
            "500 connections to each of 2 arms need 2264 descriptors, and the limit is 1024",
        ),
        (100, 2, "2 connections to each of 2 arms need 272 descriptors, and the limit is 100"),
        // Proxies start with as many.
        (300, 2, proxies_need),
        (1023, 2, proxies_need),
    ] {
        let sandbox = Sandbox::new();
        let connections = format!("connections: {connections}");
        let text = study("proxy: {kind: nginx}\n").replace("connections: 2", &connections);
        sandbox.write("study.yaml", &text);
        let ended = sandbox.run_behind(&format!("ulimit -n {limit}"));
        ended.refused(&[words, &limit.to_string(), "raise the limit"]);
        assert!(!sandbox.run_folder().exists());
    }
}

#[test]
fn a_check_starts_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "study.yaml",
        &study("proxy: {kind: nginx}\narms: [{name: off, settings: {gzip: off}}]\n"),
    );
    check(&sandbox, "").with_code(0).stdout.has_all(&[
        "baseline",
        "the baseline again (A/A)",
        "gzip = off",
        " 6 blocks, ",
        "Nothing was started",
    ]);
    let longer = check(&sandbox, "--time 200%").with_code(0).stdout;
    assert!(longer.contains(" 13 blocks, "), "{longer}");
    let least = check(&sandbox, "--time 0.1%").with_code(0).stdout;
    let remark = "--time 0.1% would be ";
    assert_eq!(least.matches(remark).count(), 1, "{least}");
    check(&sandbox, "--time half")
        .refused_in_a_line(&["--time: `half` is not a share such as 25%"]);
    check(&sandbox, "--time 0%").refused_in_a_line(&["--time: `0%`"]);
    assert_eq!(names_in(&sandbox.path("")), ["study.yaml", "temporary"]);
    sandbox.assert_clean();
}

fn check(sandbox: &Sandbox, more: &str) -> Ended {
    sandbox.call(&format!("run --check study.yaml --out 'a run' {more}"))
}

#[test]
fn a_check_reads_what_loads_name_and_tells_everything_with_its_place() {
    let sandbox = Sandbox::new();
    sandbox.write("a.log", "0.1\n0.2\nlater\n");
    sandbox.write("b.log", "{\"time\": 1, \"path\": \"/a\"}\n");
    let loads = "\
- {name: a, request: {path: '/{{sequnce}}/{{rnd}}', fields: {X: '{{line:nowhere}}'}}, COMMON, closed: true}
- {name: b, requests: [{path: /, weight: 1}, {path: '/{{'}], COMMON, closed: true}
- {name: c, trace: a.log, pipeline: many, COMMON}
- {name: d, trace: none.log, expect: sha256=abc, COMMON}
- {name: e, trace: b.log, request: {path: /x}, COMMON}
- {name: f, closed: true, tls: {cert: none.pem, key: none.pem}, COMMON}
- {name: g, closed: true, requests: [{path: /a, weight: 1}, {path: /b, weight: 1000000000},
    {path: /c, weight: 0.000001}], COMMON}
- {name: h, trace: '-', COMMON}
"
    .replace("COMMON", "connections: 2, duration: 1m");
    let text = format!(
        "weir: 1\nname: a\nquestion: b\nproxy: {{kind: nginx}}\nblocks: {{slice: 1s}}\nloads:\n{loads}"
    );
    sandbox.write("study.yaml", &text);
    let errors = [
        ("7:29", "`sequnce` is not a slot"),
        ("7:29", "`rnd` is not a slot"),
        ("7:65", "cannot read nowhere: No such file"),
        ("8:53", "the slot has no `}}`"),
        ("9:20", "a.log:3:1: expected a time"),
        ("9:37", "`many` is not a whole number from 1 to 1024"),
        ("10:20", "cannot read `none.log`: No such file"),
        ("10:38", "`abc` is not 64 hexadecimal digits"),
        ("11:20", "the trace has its own methods and paths"),
        ("12:39", "cannot read `none.pem`: No such file"),
        ("12:54", "cannot read `none.pem`: No such file"),
        ("15:20", "cannot read `-`: studies and generators on other hosts need a file"),
        ("14:24", "weight 0.000001 is less than a 2^32nd of all weights"),
    ];
    let ended = sandbox.call("run --check study.yaml").refused(&errors.map(|(_, words)| words));
    for (position, words) in errors {
        let shown = ended.stderr.split("error: ");
        let at = format!(" study.yaml:{position}\n");
        let matching = shown.filter(|error| error.contains(words) && error.contains(&at));
        assert!(matching.count() > 0, "{words} at {position}: {}", ended.stderr);
    }
    sandbox.assert_clean();
}

#[test]
fn an_answer_that_the_study_does_not_expect() {
    let sandbox = Sandbox::new();
    let text = study("proxy: {kind: nginx}\n")
        .replace("connections: 2", "connections: 2, expect: status=404");
    let ended = sandbox.run(&text).end().with_code(2);
    let reason = "answers with status 200 under load `closed`, but its `expect` allows 404";
    let hint = "hint: write `expect: status=200` in the study if that status is right";
    ended.stderr.has_all(&[reason, hint]);
    assert!(!ended.stderr.contains("error log"), "{}", ended.stderr);
    sandbox.assert_clean();
}

#[test]
fn a_resume_takes_no_other_orders() {
    run("run --resume x --check").refused(&["cannot be used with"]);
    run("run --resume x --time 50%").refused(&["cannot be used with"]);
    run("run --resume /nonexistent").refused_in_a_line(&["/nonexistent/run.json: No such file"]);
    run("run").refused(&["<STUDY>"]);
}
