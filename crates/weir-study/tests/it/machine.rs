//! Tests of what depends on the machine: room for connections, and levels that are left to it.

use weir_model::study::{ArmRole, Study};
use weir_parameters::Catalog;
use weir_study::{CheckContext, StudyErrors, parse};

use crate::{context, with};

fn on(context: &CheckContext, text: &str) -> Result<Study, StudyErrors> {
    parse(text, "study.yaml", &Catalog::builtin(), context)
}

fn cpus(cpus: &str) -> CheckContext {
    CheckContext { cpus_available: cpus.parse().ok(), ..context() }
}

/// Returns the messages, and the text that each points at.
fn refused(context: &CheckContext, text: &str) -> Vec<(String, String)> {
    let errors = on(context, text).expect_err(text);
    errors.errors().iter().map(|error| (error.message.clone(), error.text.clone())).collect()
}

/// Returns the first error of a study with other connections and settings.
fn first_refusal(context: &CheckContext, load: &str, settings: &str) -> (String, String) {
    let text = with("").replace("connections: 20", load).replace("worker_processes: 1", settings);
    refused(context, &text).remove(0)
}

#[test]
fn connections_must_fit_into_descriptors() {
    let small = CheckContext { most_descriptors: 1024, own_tables: false, ..context() };
    let (message, place) = first_refusal(&small, "connections: 193", "worker_processes: 1");
    assert_eq!(
        message,
        "193 connections to each of 2 arms need 1036 descriptors, and the limit is 1024"
    );
    assert_eq!(place, "193");
    let (message, place) =
        first_refusal(&small, "connections: 20, hold: 500", "worker_processes: 1");
    assert_eq!(
        message,
        "20 connections and 500 held ones to each of 2 arms need 1344 descriptors, and the limit is 1024"
    );
    assert_eq!(place, "500");
    let settings = "worker_processes: 1, worker_connections: 380, worker_rlimit_nofile: 400";
    assert_eq!(
        first_refusal(&context(), "connections: 210", settings).0,
        "the proxy of arm `baseline` has descriptors for 200 clients, and the load needs 210"
    );
    assert_eq!(
        first_refusal(&context(), "connections: 100, hold: 300", settings).0,
        "the proxy of arm `baseline` has descriptors for 35 clients beside 300 held connections, and the load needs 100"
    );
    assert_eq!(
        first_refusal(&context(), "connections: 30, hold: 300", settings).0,
        "the proxy of arm `baseline` has connections for 25 clients beside 300 held connections, and the load needs 30"
    );
    let ports = CheckContext { local_ports: 1, ..context() };
    assert_eq!(
        refused(&ports, &with("").replace("connections: 20", "connections: 255"))[0].0,
        "255 connections need one local port each, and 253 source addresses have 253"
    );
}

fn study_that_holds(held: u32) -> String {
    let settings = "worker_processes: 8, worker_connections: 2000, worker_rlimit_nofile: 2000";
    with("")
        .replace("connections: 20", &format!("connections: 20, hold: {held}"))
        .replace("worker_processes: 1", settings)
}

#[test]
fn threads_with_tables_of_their_own_hold_more_than_one_limit_of_connections() {
    let small = CheckContext { most_descriptors: 2048, ..context() };
    let study = on(&small, &study_that_holds(13_000));
    assert!(study.is_ok(), "{}", study.expect_err("13000").render(false));
    let one_table = CheckContext { own_tables: false, ..small.clone() };
    assert_eq!(
        refused(&one_table, &study_that_holds(13_000))[0].0,
        "20 connections and 13000 held ones to each of 2 arms need 26344 descriptors, and the limit is 2048"
    );
    // Every thread has one that asks, so there are 20 at most.
    assert_eq!(
        refused(&small, &study_that_holds(40_000))[0].0,
        "20 connections and 40000 held ones to each of 2 arms need 80344 descriptors, and the limit is 2048 for each of 20 threads"
    );
    // A proxy's own limit cannot be above the hard one.
    let smaller = CheckContext { most_descriptors: 1250, ..context() };
    assert_eq!(
        refused(&smaller, &study_that_holds(9_300))[0].0,
        "the proxy of arm `baseline` has descriptors for 0 clients beside 9300 held connections, and the load needs 20"
    );
}

/// Returns a study with an optional load of many connections before its own.
fn with_optional_load(second: &str) -> String {
    with("").replace(
        "- {name: closed",
        &format!(
            "- {{name: many, closed: true, connections: 9000, duration: 1m, optional: true}}\n- {{name: {second}"
        ),
    )
}

#[test]
fn optional_loads_without_room_are_left_out_and_the_last_one_is_an_error() {
    let small = CheckContext { most_descriptors: 1024, own_tables: false, ..context() };
    let study = on(&small, &with_optional_load("few"))
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(study.loads.len(), 1);
    assert_eq!(study.loads[0].name, "few");
    assert_eq!(
        study.left_out,
        [
            "load `many` is left out: 9000 connections to each of 2 arms need 36264 descriptors, and the limit is 1024"
        ]
    );
    let both =
        with_optional_load("few, optional: true").replace("connections: 20", "connections: 8000");
    let errors = refused(&small, &both);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].1, "8000");
}

#[test]
fn levels_may_be_left_to_the_machine() {
    let text = with("one-at-a-time: {worker_processes: 1..cpus}");
    #[rustfmt::skip]
    let rows = [
        ("0-5", &["worker_processes=2", "worker_processes=4", "worker_processes=6"][..]),
        ("2,7", &["worker_processes=2"]),
        ("3", &[]),
    ];
    for (set, expected) in rows {
        let study =
            on(&cpus(set), &text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let names: Vec<&str> = study
            .arms
            .iter()
            .filter(|arm| arm.role == ArmRole::Change)
            .map(|arm| &*arm.name)
            .collect();
        assert_eq!(names, expected, "{set}");
        assert_eq!(study.left_out.len(), usize::from(expected.is_empty()));
    }
    let settings = with(
        "arms: [{name: a, settings: {worker_processes: cpus, worker_rlimit_nofile: descriptors}}]",
    );
    let study =
        on(&cpus("0-3"), &settings).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(study.arms[2].settings["worker_processes"], "4");
    assert_eq!(study.arms[2].settings["worker_rlimit_nofile"], "524288");
}

fn messages(rest: &str) -> Vec<String> {
    refused(&context(), &with(rest)).into_iter().map(|(message, _)| message).collect()
}

#[test]
fn levels_of_the_machine_are_for_numbers_and_figures_for_arms_that_could_be() {
    assert_eq!(messages("one-at-a-time: {gzip: 1..cpus}"), ["`gzip`: `1` is not `on` or `off`"]);
    assert_eq!(
        messages("one-at-a-time: {worker_processes: 1..cpu}"),
        ["`worker_processes`: `1..cpu` is not `auto` or a whole number from 1 to 1024"]
    );
    let figures = "published: {source: s, metric: m, figures: {worker_processes=24: 5, worker_processes=x: 1, gzip=24: 1}}";
    assert_eq!(
        messages(&format!("one-at-a-time: {{worker_processes: 1..cpus}}\n{figures}")),
        ["no arm is named `worker_processes=x`", "no arm is named `gzip=24`"]
    );
    assert_eq!(messages(&format!("one-at-a-time: {{worker_processes: 2}}\n{figures}")).len(), 3);
}
