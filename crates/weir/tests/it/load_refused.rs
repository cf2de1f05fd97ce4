//! `weir load` with what cannot be: one clear line, exit code 2, and nothing is sent.

use std::net::TcpListener;

use crate::faulty::origin;
use crate::load::Server;
use crate::program::{Running, behind, run, weir};

#[test]
fn urls_that_are_none_of_weirs() {
    for (url, words) in [
        ("127.0.0.1:8080", "has no scheme"),
        ("ftp://127.0.0.1/", "has the scheme ftp"),
        ("http:///index.html", "is not a URL"),
        ("http://user:secret@127.0.0.1/", "has a user name in it"),
        ("http://127.0.0.1:99999/", "has no port `99999`"),
        ("http://[::1]:99999/", "has no port `99999`"),
    ] {
        let shown = url.replace("user:secret", "(masked)");
        run(&format!("load {url}")).refused_in_a_line(&[words, &shown, "\nhint: "]);
    }
}

#[test]
fn a_name_that_does_not_resolve() {
    // A label of 64 letters is none (RFC 1035 §2.3.4), so no name server has to be asked.
    let name = "x".repeat(64);
    run(&format!("load http://{name}.test/")).refused_in_a_line(&[
        &name,
        "the name does not resolve",
        "\nhint: ",
    ]);
}

#[test]
fn a_port_where_nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let port = address.port().to_string();
    let words = [&port[..], "Connection refused (os error 111)", "\nhint: "];
    run(&format!("load http://{address}/")).refused_in_a_line(&words);
}

#[test]
fn values_that_cannot_be() {
    let origin = origin();
    #[rustfmt::skip]
    let rows = [
        ("-c 0", "-c: `0` is not a whole number of at least 1"),
        ("-c 2 -t 3", "-c 2: fewer connections than threads\nhint: use -t 2"),
        ("-t 0", "-t 0: at least one thread"),
        ("-R 0", "-R: `0` is out of range"),
        ("-R 99999999999999999999", "out of range: a rate must be from 0.000001 to 1000000000"),
        ("--trace a.log --trace-speed 1e300", "the speed of a trace must be from 0.000001 to 1000000"),
        ("-R fast", "-R: `fast` is not a rate"),
        ("-R -5", "-R: `-5` is out of range: it must not be negative"),
        ("-d nonsense", "-d: `nonsense` is not a duration such as"),
        ("-d 0", "-d 0: at least 1ms"),
        ("-n 0", "-n: `0` is not a whole number of at least 1"),
        ("-T 0", "-T: `0` is not a duration of at least 1ms"),
        ("-T soon", "-T: `soon` is not a duration"),
        ("--ramp-up soon", "--ramp-up: `soon` is not a duration"),
        ("--cpus 0-", "--cpus: `0-` is not a list of CPUs"),
        ("--cpus 900", "CPU 900 is not one that weir may use\nhint: "),
        ("-H nocolon", "-H `nocolon`: a header is a name, a colon and a value\nhint: "),
        ("-H :value", "field name"),
        ("-m G(T", "method `G(T` is not a token"),
        ("--content-file /nonexistent", "--content-file /nonexistent: No such file"),
        ("-o /nonexistent/result", "-o /nonexistent/result: No such file"),
        ("-o /", "-o /: Is a directory"),
    ];
    for (flags, words) in rows {
        origin.load(flags).refused_in_a_line(&[words]);
    }
    assert_eq!(origin.counters(0).requests, 0);
}

#[test]
fn more_connections_than_descriptors() {
    let origin = origin();
    let line = format!("load -c 100 {}", origin.url());
    let ended = Running::start(&mut behind("ulimit -n 64", &line)).end();
    ended.refused_in_a_line(&[
        "-c 100: a thread needs 1",
        "open descriptors, and may have 64",
        "\nhint: raise the limit: ulimit -n ",
    ]);
    assert_eq!(origin.counters(0).connections, 0);
}

#[test]
fn the_soft_limit_of_descriptors_is_no_obstacle() {
    let origin = origin();
    let line = format!("load -q -n 100 -c 100 {}", origin.url());
    let ended = Running::start(&mut behind("ulimit -S -n 64", &line)).end();
    ended.with_code(0);
    assert_eq!(origin.counters(0).requests, 100);
}

#[test]
fn flags_that_do_not_exist_get_the_nearest_one() {
    run("load --conections 5 http://127.0.0.1/").refused(&["--conections", "'--connections'"]);
    run("laod http://127.0.0.1/").refused(&["laod", "'load'"]);
    run("load --format jsn http://127.0.0.1/").refused(&["jsn", "'json'"]);
    run("load").refused(&["where are requests to be sent?\nhint: weir load http"]);
    run("load -b x --content-file y http://127.0.0.1/").refused(&["cannot be used with"]);
}

#[test]
fn help_and_version_are_no_errors() {
    let help = run("load --help").with_code(0);
    for flag in ["-c", "-R", "--ramp-up", "--content-file"] {
        assert!(help.stdout.contains(flag), "{flag}");
    }
    let version = Running::start(&mut weir(["--version"])).end().with_code(0);
    assert!(version.stdout.starts_with("weir 0."), "{}", version.stdout);
}
