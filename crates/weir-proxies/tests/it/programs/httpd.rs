//! Tests of configurations that are specific to httpd, and of what it serves with them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use weir_model::study::{ProxyKind, ProxyRole};
use weir_parameters::Catalog;
use weir_sut::{Proxy, SutError, WorkFolder};

use crate::programs::configured::levels;
use crate::programs::gate::Gate;
use crate::programs::setup::{Changes, Setup, program, run, stock};
use crate::programs::support::{Origin, get};

/// Setting for one process, so that there is one pool of connections to the origin.
pub(crate) const ALONE: (&str, &str) = ("max_request_workers", "25");

fn httpd() -> Arc<dyn Proxy> {
    program(ProxyKind::Httpd)
}

fn proxy(changes: Changes<'_>, origin: SocketAddr) -> Setup<'_> {
    Setup::proxy(ProxyKind::Httpd, changes, origin)
}

fn files(changes: Changes<'_>, size: u64) -> Setup<'_> {
    Setup::files(ProxyKind::Httpd, changes, size)
}

/// Every parameter is set to a level other than its default, and read back from the running httpd.
#[test]
fn what_runs_is_what_was_asked_for() {
    let catalog = Catalog::builtin();
    for role in [ProxyRole::ReverseProxy, ProxyRole::StaticFiles { size: 1 }] {
        for mpm in ["event", "worker", "prefork"] {
            let mut settings = stock(ProxyKind::Httpd, &[("mpm", mpm)]);
            for row in catalog.parameters(ProxyKind::Httpd) {
                let is_for_threads = row.writes[0].context.name() == "threads";
                let is_left_out = match row.writes[0].context.name() {
                    "event" => mpm != "event",
                    "directory" => role == ProxyRole::ReverseProxy,
                    "proxy" => role != ProxyRole::ReverseProxy,
                    _ => row.id == "mpm" || row.id == "max_request_workers",
                };
                let level = levels(ProxyKind::Httpd, row).into_iter().find(|level| {
                    let default = row.default.newest().level.as_ref();
                    Some(level) != default && level.len() < 12
                });
                if let Some(level) = level.filter(|_| !is_left_out) {
                    settings.insert(row.id.clone(), level);
                }
                if is_for_threads {
                    let threads = if mpm == "prefork" { "25" } else { "10" };
                    settings.insert(row.id.clone(), threads.to_owned());
                }
            }
            let workers = if mpm == "prefork" { "3" } else { "30" };
            settings.insert("max_request_workers".to_owned(), workers.to_owned());
            let origin = Origin::start();
            let setup = Setup { settings, role: role.clone(), ..proxy(&[], origin.address) };
            let arm = setup.start();
            assert_eq!(arm.proxy.worker_pids().len(), 3, "{mpm}");
            let expected = catalog.complete(ProxyKind::Httpd, &setup.settings);
            assert_eq!(arm.effective().levels, expected, "{mpm} {role:?}");
            let response = arm.get("/");
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        }
    }
}

#[test]
fn targets_go_on_unchanged_and_the_host_as_the_setting_says() {
    const TARGET: &str = "/a%2Fb//c;d/%7Ee?x=%20&y=/";
    let origin = Gate::start();
    for (level, host) in [("off", origin.address.to_string()), ("on", "test".to_owned())] {
        let arm = proxy(&[("proxy_preserve_host", level)], origin.address).start();
        let response = arm.get(TARGET);
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        // The origin server answers with what it was asked.
        for line in [format!("\r\n\r\nGET {TARGET} HTTP/1.1\n"), format!("\nHost: {host}\n")] {
            assert!(response.contains(&line), "{response}");
        }
    }
}

#[test]
fn what_is_asked_of_httpd_itself_is_no_client_s_to_see_and_never_goes_on() {
    let origin = Gate::start();
    let arm = proxy(&[ALONE], origin.address).start();
    let before = arm.counters();
    let response = arm.get("/.weir/else");
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
    assert_eq!(origin.accepted(), 0);
    assert!(arm.get("/").starts_with("HTTP/1.1 200 "));
    assert_eq!(origin.accepted(), 1);
    let after = arm.counters();
    // The two above, and the asking before: each is counted when it is over.
    let grown = after["Total Accesses"] - before["Total Accesses"];
    assert_eq!(grown, 3, "{before:?} {after:?}");
}

#[test]
fn without_extended_status_requests_are_not_counted() {
    let changes = [ALONE, ("extended_status", "off")];
    let arm = files(&changes, 1).start();
    let counters = arm.counters();
    assert_eq!(counters.get("Total Accesses"), None, "{counters:?}");
}

/// Returns the answers on one connection to several requests sent in one piece; between single requests an idle
/// connection might be closed.
fn ask_again(address: SocketAddr, requests: usize) -> String {
    let mut stream = TcpStream::connect(address).expect("the proxy accepts");
    let request = "GET /index.html HTTP/1.1\r\nHost: test\r\n\r\n";
    stream.write_all(request.repeat(requests).as_bytes()).expect("the proxy reads");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the proxy answers");
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn a_client_s_connection_is_kept_as_the_settings_say() {
    for (changes, answered) in [
        // The first request and three more.
        (&[("keepalive_requests", "3")][..], 4),
        (&[("keepalive", "off")], 1),
        (&[("keepalive_requests", "0"), ("keepalive_timeout", "50ms")], 5),
    ] {
        let arm = files(changes, 1).start();
        let responses = ask_again(arm.proxy.address(), 5);
        assert_eq!(responses.matches("HTTP/1.1 200 OK").count(), answered, "{changes:?}");
    }
}

#[test]
fn remarks_are_in_httpd_s_own_words() {
    let folder = WorkFolder::create().unwrap();
    let odd = files(&[("max_request_workers", "90")], 1).write(&folder);
    let remarks = httpd().check(&odd).unwrap().join("\n");
    assert!(remarks.contains("not an integer multiple"), "{remarks}");
}

/// The pool is the same after a load of more connections than httpd has threads for, and after none.
#[test]
fn workers_stay_the_same_under_load_and_without() {
    let origin = Origin::start();
    let changes = [("max_request_workers", "6"), ("threads_per_child", "2")];
    let mut arm = proxy(&changes, origin.address).start();
    let workers = arm.proxy.worker_pids();
    assert_eq!(workers.len(), 3);
    let address = arm.proxy.address();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| (0..20).for_each(|_| assert!(get(address, "/").ends_with("hello"))));
        }
    });
    // Once a second httpd looks whether processes are too many or too few.
    std::thread::sleep(Duration::from_millis(2500));
    arm.proxy.alive().unwrap();
    let now = weir_probe::process::children(arm.proxy.master_pid()).unwrap();
    assert_eq!(now, workers);
}

/// An error that is found only at the start is in httpd's log; httpd prints only that it failed.
#[test]
fn a_start_that_fails_has_the_words_of_the_log() {
    let folder = WorkFolder::create().unwrap();
    let configuration = files(&[ALONE], 1).write(&folder);
    fs::remove_file(configuration.prefix().join("conf/mime.types")).unwrap();
    let error = run(&*httpd(), &configuration).unwrap_err();
    let is_so = matches!(&error, SutError::NotStarted { words, .. }
        if words.contains("could not open mime types config file"));
    assert!(is_so, "{error}");
}
