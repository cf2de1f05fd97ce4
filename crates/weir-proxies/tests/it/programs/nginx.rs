//! Tests of configurations that are specific to nginx.

use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_sut::{Launch, Proxy};

use crate::programs::setup::{Changes, Setup, program};
use crate::programs::support::until;

pub(crate) fn nginx() -> Arc<dyn Proxy> {
    program(ProxyKind::Nginx)
}

pub(crate) fn files(changes: Changes<'_>) -> Setup<'_> {
    Setup::files(ProxyKind::Nginx, changes, 1)
}

#[test]
fn limits_are_those_that_were_asked_for() {
    assert_eq!(limited(&[]).start().proxy.nofile().unwrap(), 900);

    let arm = limited(&[("worker_rlimit_nofile", "901")]).start();
    // A worker sets it by itself, once it runs.
    until("the worker's own limit", || arm.proxy.nofile().ok() == Some(901));
    let effective = arm.effective();
    assert_eq!(effective.levels["worker_rlimit_nofile"], "901");
    assert!(effective.text.contains("worker_rlimit_nofile 901;"));
}

fn limited(changes: Changes<'_>) -> Setup<'_> {
    Setup { launch: Launch { nofile: Some(900), ..Launch::default() }, ..files(changes) }
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
