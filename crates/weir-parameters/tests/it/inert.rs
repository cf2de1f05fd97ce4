//! Inert changes, by the values that were read back from the two arms.

use weir_model::record::Inert;
use weir_model::study::{ProxyKind::Nginx, Settings};
use weir_parameters::{Catalog, Scope, Scoped};

fn settings(list: &[(&str, &str)]) -> Settings {
    list.iter().map(|(id, level)| ((*id).to_owned(), (*level).to_owned())).collect()
}

fn why(changes: &[(&str, &str)], here: &[(&str, &str)], there: &[(&str, &str)]) -> String {
    let [inert] = &inert(changes, here, there)[..] else {
        panic!("{changes:?} is not inert");
    };
    inert.why.clone()
}

fn inert(changes: &[(&str, &str)], here: &[(&str, &str)], there: &[(&str, &str)]) -> Vec<Inert> {
    let (changes, here, there) = (settings(changes), settings(here), settings(there));
    Catalog::builtin().inert(Nginx, &changes, &here, &there)
}

/// The advice of study A: somaxconn alone, although nginx requests a queue of 511.
#[test]
fn a_backlog_that_something_else_caps_is_inert() {
    let there = [("net.core.somaxconn", "4096"), ("backlog", "511"), ("listen-backlog", "511")];
    let (somaxconn, backlog) = (("net.core.somaxconn", "32768"), ("backlog", "32768"));
    let alone = inert(&[somaxconn], &[somaxconn, there[1], there[2]], &there);
    let expected = Inert {
        id: "net.core.somaxconn".to_owned(),
        requested: "32768".to_owned(),
        effective: "listen backlog 511".to_owned(),
        why: "the kernel takes the smaller of `backlog` (511) and `net.core.somaxconn` (32768)"
            .to_owned(),
    };
    assert_eq!(alone, [expected]);

    let both = [somaxconn, backlog, ("listen-backlog", "32768")];
    assert_eq!(inert(&[somaxconn, backlog], &both, &there), []);
    // Raised as far as the other one goes: not inert, though less than was asked for.
    let partly = inert(&[backlog], &[backlog, ("listen-backlog", "4096")], &there);
    assert_eq!(partly, []);
}

#[test]
fn what_was_not_measured_is_not_called_inert() {
    let change = [("net.core.somaxconn", "32768")];
    let read = [("net.core.somaxconn", "32768"), ("backlog", "511")];
    let measured = [("listen-backlog", "511")];
    assert_eq!(inert(&change, &[], &measured), []);
    assert_eq!(inert(&change, &measured, &[]), []);
    assert_eq!(inert(&[("nonsense", "1")], &measured, &measured), []);
    // What is made of parts is known when all parts are.
    let there = [("net.core.somaxconn", "4096"), ("backlog", "511")];
    assert_eq!(inert(&change, &read, &there).len(), 1);
    assert_eq!(inert(&change, &read[..1], &there), []);
}

#[test]
fn connections_beyond_the_descriptors_are_inert() {
    let (wanted, nofile) = (("worker_connections", "65535"), ("nofile", "1024"));
    let there = [("worker_connections", "4096"), nofile];
    let inerts = inert(&[wanted], &[wanted, nofile], &there);
    assert_eq!(inerts[0].effective, "connections of a worker 1024");
    assert_eq!(
        inerts[0].why,
        "a worker can hold the smaller of `worker_connections` (65535) and descriptor limit (1024)"
    );
    let there = [("worker_connections", "768"), nofile];
    assert_eq!(inert(&[wanted], &[wanted, ("nofile", "65535")], &there), []);
}

#[test]
fn a_limit_that_is_not_reached_or_comes_second_is_inert() {
    let limits = [("nofile", "1024")];
    for (change, expected) in [
        (
            ("worker_rlimit_nofile", "100000"),
            "the limit in force stayed 1024, whatever was asked for",
        ),
        (
            ("rlimit_nofile", "4096"),
            "`worker_rlimit_nofile` decides where it is set, and 1024 was in force in both arms",
        ),
    ] {
        assert_eq!(why(&[change], &limits, &limits), expected);
    }
}

#[test]
fn a_host_that_has_more_is_left_alone() {
    let host = [("fs.file-max", "2466170")];
    let inerts = inert(&[("fs.file-max", "1048576")], &host, &host);
    assert_eq!(inerts[0].effective, "fs.file-max 2466170");
    let why = "the host has 2466170 already, and weir never lowers it";
    assert_eq!(inerts[0].why, why);
    assert!(!is_to_be_written("fs.file-max", "1048576", "2466170"));
    assert!(!is_to_be_written("fs.file-max", "2466170", "2466170"));
    assert!(is_to_be_written("fs.file-max", "3000000", "2466170"));
    assert!(is_to_be_written("net.core.rmem_max", "212992", "4194304"));
}

fn is_to_be_written(id: &str, level: &str, now: &str) -> bool {
    let catalog = Catalog::builtin();
    let row = catalog.get(Nginx, id).expect("a row");
    row.is_to_be_written(level, now)
}

#[test]
fn a_level_that_was_there_before_is_inert() {
    let both = [("net.ipv4.tcp_fin_timeout", "60")];
    let same = "the arm that it is compared with has this value too";
    assert_eq!(why(&both, &both, &both), same);
    let changed = [("net.ipv4.tcp_fin_timeout", "15")];
    assert_eq!(why(&changed, &both, &both), "60 stayed in force in both arms");
    assert_eq!(inert(&changed, &changed, &both), []);
}

#[test]
fn settings_go_to_those_who_put_them_into_force() {
    let catalog = Catalog::builtin();
    let all = settings(&[
        ("gzip", "off"),
        ("colour", "red"),
        ("net.core.somaxconn", "32768"),
        ("net.ipv4.ip_local_port_range", "1024 65000"),
        ("fs.file-max", "1048576"),
        ("net.core.rmem_max", "4194304"),
        ("rlimit_nofile", "65536"),
    ]);
    let expected = Scoped {
        proxy: settings(&[("gzip", "off"), ("colour", "red")]),
        netns: settings(&[
            ("net.core.somaxconn", "32768"),
            ("net.ipv4.ip_local_port_range", "1024 65000"),
        ]),
        host: settings(&[("fs.file-max", "1048576"), ("net.core.rmem_max", "4194304")]),
        nofile: Some(65_536),
        ..Scoped::default()
    };
    assert_eq!(catalog.split(Nginx, &all), expected);
    let limit = catalog.scope(Nginx, "rlimit_nofile");
    assert_eq!(limit, Some(Scope::ProcessLaunch));
    assert_eq!(catalog.scope(Nginx, "colour"), None);
}
