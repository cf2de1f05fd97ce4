//! Tests of kernel parameters and limits in studies, and of parameters that users add. They are allowed wherever those
//! of the proxy are, with errors as good.

use weir_model::record::Remark;
use weir_model::study::Study;
use weir_parameters::Catalog;
use weir_study::{parse, remarks};

use crate::{context, read, with};

fn read_study(rest: &str) -> Study {
    read(&with(rest)).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

fn names(study: &Study) -> Vec<&str> {
    study.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn changes(study: &Study) -> Vec<Vec<(&str, &str)>> {
    study
        .arms
        .iter()
        .map(|arm| &arm.changes)
        .map(|changes| changes.iter().map(|(id, level)| (&**id, &**level)).collect())
        .collect()
}

#[test]
fn every_way_to_write_arms_takes_them() {
    let listed = read_study(
        "a/a: false\n\
         arms:\n\
         - {name: both, settings: {net.core.somaxconn: 32768, backlog: 32768}}\n\
         - {name: ports, settings: {net.ipv4.ip_local_port_range: 1024   65000}}\n\
         - {name: files, settings: {rlimit_nofile: descriptors, fs.file-max: 1048576}}",
    );
    assert_eq!(
        changes(&listed)[1..],
        [
            vec![("backlog", "32768"), ("net.core.somaxconn", "32768")],
            vec![("net.ipv4.ip_local_port_range", "1024 65000")],
            vec![("fs.file-max", "1048576"), ("rlimit_nofile", "524288")],
        ]
    );

    let one_at_a_time = read_study(
        "a/a: false\n\
         one-at-a-time: {net.core.somaxconn: [128, 32768], net.ipv4.tcp_rmem: 4096 131072 6291456}",
    );
    assert_eq!(
        names(&one_at_a_time)[1..],
        [
            "net.core.somaxconn=128",
            "net.core.somaxconn=32768",
            "net.ipv4.tcp_rmem=4096-131072-6291456"
        ]
    );

    let all = read_study(
        "a/a: false\nfactorial: {net.core.somaxconn: [128, 4096], backlog: [511, 4096]}",
    );
    assert_eq!(all.arms.len(), 5);

    let steps = read_study(
        "a/a: false\n\
         cumulative:\n\
         - {name: one, settings: {net.ipv4.tcp_tw_reuse: 1}}\n\
         - {name: two, settings: {net.ipv4.tcp_fin_timeout: 15}}",
    );
    assert_eq!(steps.arms[2].settings["net.ipv4.tcp_tw_reuse"], "1");
    assert_eq!(steps.arms[2].against, 1);
}

#[test]
fn the_baseline_has_them_and_a_level_like_its_own_is_no_change() {
    let text = with("a/a: false\none-at-a-time: {net.core.somaxconn: [128, 4096]}")
        .replace("worker_processes: 1", "worker_processes: 1, net.core.somaxconn: 128");
    let study = read(&text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(names(&study)[1..], ["net.core.somaxconn=4096"]);
    assert_eq!(study.proxy.settings["net.core.somaxconn"], "128");
}

#[test]
fn what_is_wrong_with_them_is_said_where_it_stands() {
    for (rest, expected) in [
        (
            "one-at-a-time: {net.core.somaxcon: [128]}",
            "study.yaml:7:17: unknown parameter `net.core.somaxcon` [net.core.somaxconn]",
        ),
        (
            "arms: [{name: a, settings: {somaxconn: 128}}]",
            "study.yaml:7:29: unknown parameter `somaxconn` [net.core.somaxconn]",
        ),
        (
            "arms: [{name: a, settings: {net.ipv4.tcp_tw_reuse: 3}}]",
            "study.yaml:7:52: `net.ipv4.tcp_tw_reuse`: `3` is not a whole number from 0 to 2 [2]",
        ),
        (
            "arms: [{name: a, settings: {net.ipv4.ip_local_port_range: 65000 1024}}]",
            "study.yaml:7:59: `net.ipv4.ip_local_port_range`: `65000 1024` is not 2 whole numbers \
             from 1 to 65535 in one value (`first last`), none smaller than the one before \
             [1024 65000]",
        ),
        (
            "arms: [{name: a, settings: {net.ipv4.ip_local_port_range: 1000 65000}}]",
            "study.yaml:7:29: `net.ipv4.ip_local_port_range` 1000 is below the kernel's default of \
             `net.ipv4.ip_unprivileged_port_start` 1024: the kernel refuses a range that begins \
             below it (EINVAL)",
        ),
    ] {
        let errors = read(&with(rest)).expect_err(rest);
        let error = &errors.errors()[0];
        let nearest = error.nearest.as_ref().map(|nearest| format!(" [{nearest}]"));
        let message = format!(
            "study.yaml:{}:{}: {}{}",
            error.line,
            error.column,
            error.message,
            nearest.unwrap_or_default()
        );
        assert_eq!(message, expected);
    }
}

#[test]
fn what_will_be_inert_is_said_before_the_run() {
    let study = read_study("arms: [{name: queue, settings: {net.core.somaxconn: 32768}}]");
    let study_remarks = remarks(&study, &Catalog::builtin(), &context());
    assert_eq!(
        study_remarks,
        [Remark::of_arm(
            "queue",
            "arm `queue`: `net.core.somaxconn` 32768 is above `backlog` 511: a listener's queue is the \
             smaller of the two, so what is above does nothing"
        )]
    );
}

#[test]
fn users_parameters_are_named_like_the_others() {
    let rows = "
parameters:
  - id: net.ipv4.tcp_rto_min_us
    scope: kernel_netns
    level: {integer: {min: 1000, max: 1000000}}
    default: {level: \"200000\"}
    why: the shortest time before data is sent again
    source: https://docs.kernel.org/networking/ip-sysctl.html
    effective: {sysctl: {name: net.ipv4.tcp_rto_min_us}}
";
    let text = with("one-at-a-time: {net.ipv4.tcp_rto_min_us: [5000, 50000]}");
    assert!(read(&text).is_err());
    let catalog = Catalog::builtin().with_rows("mine.yaml", rows).expect("a row");
    let study = parse(&text, "study.yaml", &catalog, &context())
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(study.arms[3].settings["net.ipv4.tcp_rto_min_us"], "50000");
}
