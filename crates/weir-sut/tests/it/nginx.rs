//! Tests of configurations that are specific to nginx.

use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_sut::{Launch, Proxy};

use crate::setup::{Changes, Setup, program};
use crate::support::until;

pub(crate) fn nginx() -> Arc<dyn Proxy> {
    program(ProxyKind::Nginx)
}

pub(crate) fn files(changes: Changes<'_>) -> Setup<'_> {
    Setup::files(ProxyKind::Nginx, changes, 1)
}

#[test]
fn limits_are_those_that_were_asked_for() {
    let launch = Launch { nofile: Some(900), ..Launch::default() };
    let limited = |changes: Changes<'_>| {
        let launch = launch.clone();
        let setup = Setup { launch, ..files(changes) };
        setup.start()
    };
    assert_eq!(limited(&[]).proxy.nofile().unwrap(), 900);

    let own = limited(&[("worker_rlimit_nofile", "901")]);
    // A worker sets it by itself, once it runs.
    until("the worker's own limit", || own.proxy.nofile().ok() == Some(901));
    let effective = own.effective();
    assert_eq!(effective.levels["worker_rlimit_nofile"], "901");
    assert!(effective.text.contains("worker_rlimit_nofile 901;"));
}

#[test]
fn its_own_counters_count_what_it_was_asked() {
    let arm = files(&[]).start();
    let before = arm.counters();
    for _ in 0..5 {
        arm.get("/");
    }
    let after = arm.counters();
    // And once for the second look itself.
    for name in ["accepts", "handled", "requests"] {
        assert_eq!(after[name] - before[name], 6, "{name}");
    }
}
