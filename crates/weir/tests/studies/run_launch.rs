//! Tests of `weir run` with arms that differ in the start of their proxy, and with proxies that weir does not start at
//! all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_testkit::origin;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::{self, Sandbox, proxy_of};

/// A library that observes accepted connections, as stacks that bypass the kernel do.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *file;

/* nginx clears its environment before it serves, and writes over it. */
__attribute__((constructor)) static void begin(void) {
    const char *seen = getenv("SEEN");
    file = seen ? strdup(seen) : NULL;
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    int (*next)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
    int got = next(fd, address, length, flags);
    int log = got < 0 || !file ? -1 : open(file, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (log >= 0) {
        (void)!write(log, "accepted\n", 9);
        close(log);
    }
    return got;
}
"#;

/// Builds the library with the compiler that links weir itself.
fn library(sandbox: &Sandbox) -> PathBuf {
    let source = sandbox.write("seen.c", LIBRARY);
    let library = sandbox.path("seen.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
    let built = compiler.arg(&source).arg("-ldl").status();
    assert!(built.expect("a C compiler").success());
    library
}

fn study(launchers: &str, arms: &str) -> String {
    let more = format!("a/a: false\nlaunchers:\n{launchers}arms:\n{arms}");
    sandbox::study("{kind: nginx, settings: {worker_processes: 1}}", LOAD, &more)
}

const LOAD: &str = "  - {name: closed, closed: true, connections: 2, duration: 2s}";

/// Returns the number of accepted connections that the preloaded library has logged.
fn count_accepted(file: &Path) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| *line == "accepted").count()
}

#[test]
fn a_library_is_preloaded_into_the_arm_that_asks_for_it_and_a_missing_launcher_is_left_out() {
    let sandbox = Sandbox::new();
    let (library, log) = (library(&sandbox), sandbox.path("seen"));
    // nginx's workers are another user when weir is root.
    fs::write(&log, "").expect("own folder");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(&log, everybody).expect("own file");
    let launchers = format!(
        "  seen: {{preload: {}, env: {{SEEN: {}}}, prefix: nice -n 1}}\n  \
         onload: {{prefix: onload-that-is-not-here --profile=latency}}\n",
        library.display(),
        log.display(),
    );
    let arms = "  - {name: seen, settings: {launcher: seen}}\n  \
                - {name: bypassed, settings: {launcher: onload}}\n";
    let text = study(&launchers, arms);
    let (ended, run) = sandbox.measure(&text);
    assert!(proxy_of(&run, "bypassed").is_none(), "it was not started");
    let remark = "arm `bypassed` is left out: `onload-that-is-not-here` is not installed";
    let remarks = weir_testkit::program::remarks_of(&run);
    assert!(remarks.contains(remark), "{remarks}");
    ended.stdout.has("bypassed");
    let [baseline, seen] = ["baseline", "seen"]
        .map(|arm| &*proxy_of(&run, arm).expect("it ran").effective["launcher"]);
    assert_eq!((baseline, seen), ("none", "seen"));
    assert!(count_accepted(&log) >= 2, "the library saw the load's connections");
}

#[test]
fn what_was_not_loaded_is_said_and_nothing_is_measured() {
    let sandbox = Sandbox::new();
    // A program that is no dynamic one, and becomes the proxy: the library is lost on the way.
    let launchers = format!(
        "  lost: {{preload: {}, prefix: env -u LD_PRELOAD}}\n",
        library(&sandbox).display()
    );
    let arms = "  - {name: lost, settings: {launcher: lost}}\n";
    let ended = sandbox.run(&study(&launchers, arms)).end().with_code(1);
    let reason = "arm `lost`: launcher `lost`: ";
    ended.stderr.has_all(&[reason, "was not loaded into process"]);
    sandbox.assert_clean();
}

#[test]
fn launchers_that_are_none_are_refused_where_they_stand() {
    let sandbox = Sandbox::new();
    let launchers = "  bare: {}\n  Large: {prefix: nice}\n  here: {preload: here.so}\n";
    let arms = "  - {name: other, settings: {launcher: ohter}}\n";
    sandbox.run(&study(launchers, arms)).end().refused(&[
        "the launcher `bare` does nothing",
        "`Large` is not a valid name for a launcher",
        "`here.so` is not a usable path of a library",
        "there is no launcher `ohter`",
    ]);
    assert!(!sandbox.run_folder().exists());
}

/// Returns a study of a proxy that weir does not start, in two arms.
fn external(address: &str, second: &str) -> String {
    let [baseline, other] =
        [address, second].map(|address| format!("{{kind: external, address: \"{address}\"}}"));
    let arms = format!("arms:\n  - {{name: other, proxy: {other}}}\n");
    sandbox::study(&baseline, LOAD, &arms).replace("instances: 1", "instances: 2")
}

#[test]
fn a_proxy_that_weir_does_not_start_is_asked_and_left_alone() {
    let sandbox = Sandbox::new();
    let (first, at) = origin::start("--size 100");
    let (second, there) = origin::start("--size 100 --status 301");
    let ended = sandbox.run(&external(&at, &there)).end().with_code(0);
    ended.says(&["status 301, a redirect, which weir does not follow"]);
    sandbox.assert_clean();
    let run = sandbox.records();
    let of_other = proxy_of(&run, "other").expect("it was asked");
    assert_eq!((&*of_other.address, of_other.pid), (&*there, 0));
    assert!(of_other.effective.is_empty(), "nothing of it is known");
    for origin in [first, second] {
        origin.signal(Signal::TERM);
        let stdout = origin.end().with_code(0).stdout;
        assert!(!stdout.is_empty(), "it still lived, and counted");
    }
}

#[test]
fn a_proxy_that_does_not_answer_is_named_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    let nobody = "127.0.0.1:1";
    let ended = sandbox.run(&external(nobody, "127.0.0.1:2")).end();
    let stderr = ended.with_code(1).stderr;
    let reason = "arm `baseline` does not answer as it should: Connection refused";
    stderr.has_all(&[reason, "hint: check that the proxy is running"]);
}

#[test]
fn settings_of_a_proxy_that_weir_does_not_start_are_refused() {
    let sandbox = Sandbox::new();
    let text = external("127.0.0.1:80", "localhost").replace(
        "kind: external, address: \"127.0.0.1:80\"",
        "kind: external, address: \"127.0.0.1:80\", settings: {gzip: off}",
    );
    sandbox.run(&text).end().refused(&[
        "`settings` is for a proxy that weir starts",
        "`localhost` is not an address with a port",
    ]);
}

/// Launchers that ignore SIGTERM are killed in the end, all of them in the time of one.
#[test]
fn launchers_that_do_not_end_hold_up_an_end_for_seconds_only() {
    let sandbox = Sandbox::new();
    let script = sandbox
        .write("stubborn", "#!/bin/sh\ntrap '' TERM INT QUIT HUP\n\"$@\" &\nwait\nsleep 60\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, executable).expect("own file");
    let launchers = format!("  stubborn: {{prefix: {}}}\n", script.display());
    let arms: String = (1..=4)
        .map(|number| format!("  - {{name: arm-{number}, settings: {{launcher: stubborn, worker_connections: 90{number}}}}}\n"))
        .collect();
    let text = study(&launchers, &arms).replace("duration: 2s", "duration: 40s");
    let mut run = sandbox.run(&text);
    sandbox.await_trials(&mut run, 10);
    run.signal(Signal::TERM);
    let begun = Instant::now();
    run.end_within(Duration::from_secs(60)).with_code(130);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    sandbox.assert_clean();
}
