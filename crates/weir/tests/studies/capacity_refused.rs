//! Tests of refused `weir capacity` commands: one clear line, a hint, and no run folder.

use rcgen::CertificateParams;
use weir_testkit::program::{Ended, HasAll, Running, row, run, weir};
use weir_testkit::secure::{Authority, Nginx};
use weir_testkit::{origin, sandbox};

/// Runs `weir capacity` in a new folder, and checks that it leaves nothing there.
fn capacity(words: &[&str]) -> Ended {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = weir([&["capacity"], words].concat());
    let ended = Running::start(command.current_dir(folder.path())).end();
    let runs = std::fs::read_dir(folder.path().join("runs")).into_iter().flatten().count();
    assert_eq!(runs, 0, "{}", ended.stderr);
    ended
}

#[test]
fn what_cannot_be_searched_for_is_refused_before_anything_is_asked() {
    let nobody = "http://127.0.0.1:9/";
    #[rustfmt::skip]
    let rows: &[(&[&str], &str)] = &[
        (&[], "which server, or which study?\nhint: weir capacity http://"),
        (&["127.0.0.1:9"], "No such file or directory (os error 2)\nhint: is it a URL? weir capacity http://127.0.0.1:9/"),
        (&["localhost"], "hint: is it a URL?"),
        (&["ftp://127.0.0.1/"], "weir speaks http and https"),
        (&["http://me:word@127.0.0.1:9/"], "has a user name in it; send it with -H 'Authorization: …'"),
        (&[nobody, "-O", "p99 < 30"], "--objective: \"p99 < 30\" is no objective: give a time"),
        (&[nobody, "-O", "p99 < 5ms, p99.9 < 1ms"], "p99.9 < 1ms is stricter"),
        (&[nobody, "-O", "p99 < 10s", "-T", "2s"], "-T 2s: requests that take longer fail"),
        (&[nobody, "-R", "100"], "-R: the search chooses the rates"),
        (&[nobody, "-n", "100"], "-n: the search chooses how long it sends"),
        (&[nobody, "-d", "30s"], "-d: the search chooses how long it sends; --budget is the time for all of it"),
        (&[nobody, "--trace", "x"], "--trace: a trace has its own rates"),
        (&[nobody, "--connection", "hold:1s"], "--connection: held connections send nothing"),
        (&[nobody, "--place", "proxy=a"], "--place: for a URL only generators are started"),
        (&[nobody, "--hold", "0s"], "--hold 0s: give a time from 1s to 1h"),
        (&[nobody, "--burst", "2h"], "--burst 2h: give a time from 1s to 1h"),
        (&[nobody, "--budget", "1s"], "--budget 1s: give a time from 10s to 1h"),
        (&[nobody, "--confidence", "95"], "--confidence: `95` is not a share from 50% to less than 100%"),
        (&[nobody, "--fail-if", "p99 < 3ms"], "--fail-if `p99 < 3ms`: only `capacity`"),
        (&[nobody, "-o", "/nonexistent/x"], "-o /nonexistent/x: No such file"),
        (&["http://192.0.2.7/"], "192.0.2.7:80 is a public address, and this sends it more than 100 requests/s, requests at once, connections, or new connections/s\n\
                                  hint: if the server is yours, or its owner agrees, add --yes-this-is-mine"),
        (&["http://[2001:db8::7]:81/"], "[2001:db8::7]:81 is a public address"),
        (&[nobody, "--to", "127.0.0.1:9,192.0.2.7:80"], "192.0.2.7:80 is a public address"),
        (&["stock-reverse-proxy"], "stock-reverse-proxy does not ask for a capacity\nhint: write `objective: {capacity:"),
        (&["stock-reverse-proxy", "-c", "9"], "the study itself defines the requests"),
        (&["stock-reverse-proxy", "-O", "p99 < 9ms"], "--objective: the study itself"),
        (&["--resume", "/nonexistent"], "cannot read /nonexistent/run.json"),
        (&["--resume", "/nonexistent", "-c", "9"], "a resumed search keeps its settings"),
    ];
    for (words, message) in rows {
        row(&words.join(" "));
        capacity(words).refused_in_a_line(&[message]);
    }
    capacity(&[nobody, "a-study.yaml"]).refused(&["unexpected argument 'a-study.yaml'"]);
}

#[test]
fn answers_that_are_not_the_service_are_no_capacity() {
    for (status, hint) in [
        (
            301,
            "hint: use the URL that it redirects to; or, if the redirect is what you want to measure: -e status=301",
        ),
        (404, "hint: if that is right: -e status=404"),
        (503, "hint: if that is right: -e status=503"),
    ] {
        let (_server, address) = origin::start(&format!("--status {status}"));
        let url = format!("http://{address}/");
        let reason =
            format!("{url} answers with status {status}, which is an error: 2xx is expected");
        capacity(&[&url]).did_nothing(1, &[&reason, hint]);
    }
}

#[test]
fn no_rate_holds_what_the_way_alone_takes_longer_than() {
    let (_server, address) = origin::start("--size 1");
    let url = format!("http://{address}/");
    let reason = "weir: p99 < 1us cannot hold at any rate: the round trip to ";
    capacity(&[&url, "-O", "p99 < 1us"])
        .refused_in_a_line(&[reason, "hint: the nearest limit that may hold: -O 'p99 < "]);
}

#[test]
fn tls_that_fails_is_said_as_of_a_load() {
    let authority = Authority::new();
    let nginx = Nginx::start(&authority, "");
    let url = format!("https://{}/", nginx.address);
    let elsewhere = Authority::new();
    elsewhere.issue(|_: &mut CertificateParams| {});
    let (_server, address) = origin::start("--size 1");
    for (words, message) in [
        (vec![&*url], "hint: name the file of its authority with --ca"),
        (vec![&*url, "--ca", &elsewhere.file()], "not signed by "),
        (
            vec![&*url, "--ca", &authority.file(), "--sni", "other.test"],
            "hint: ask for a name that it is for with --sni",
        ),
        (vec![&*format!("https://{address}/")], "the server does not speak TLS on this port"),
    ] {
        row(message);
        capacity(&words).did_nothing(1, &[message]);
    }
}

#[test]
fn nobody_who_answers_is_a_failure_and_no_bad_input() {
    let nobody = "http://127.0.0.1:9/";
    for words in [vec![nobody], vec![nobody, "--to", "127.0.0.1:9"], vec!["http://name.invalid/"]] {
        capacity(&words).failed_in_a_line(&["hint: "]);
    }
}

#[test]
fn a_folder_that_cannot_be_written_to_is_said_before_the_search() {
    let (_server, address) = origin::start("--size 1");
    let line = format!("capacity http://{address}/ --out /proc/nothing");
    run(&line).with_code(2).stderr.has("/proc");
}

#[test]
fn a_budget_without_time_for_any_claim_is_refused_with_one_that_has() {
    let (_server, address) = origin::start("--size 1");
    let url = format!("http://{address}/");
    let folder = tempfile::tempdir().expect("a folder");
    let study = folder.path().join("study.yaml");
    let proxy = format!("{{kind: external, address: '{address}'}}");
    let load = "  - {name: closed, closed: true, connections: 4}";
    let text = sandbox::study(&proxy, load, "objective: {capacity: 'p99 < 50ms'}");
    std::fs::write(&study, text).expect("own folder");
    let path = study.display().to_string();
    for target in [&url, &path] {
        row(target);
        let hold = ["--hold", "20s", "--budget"];
        let reason = "a budget of 12 s is too short for any result: ";
        let ended = capacity(&[&[target.as_str()], &hold[..], &["12s"]].concat());
        let stderr = ended.stderr.clone();
        ended.refused(&[reason]);
        let (_, suffices) = stderr.split_once("hint: use --budget ").expect("a hint");
        let (suffices, _) = suffices.split_once(", or ").expect("both ways");
        // That is not refused, but told to be too short for a hold: the file that is in the way is.
        let out = ["--out", "/proc/nothing"];
        capacity(&[&[target.as_str()], &hold[..], &[suffices], &out].concat()).refused(&["/proc"]);
    }
}
