//! Tests of `weir scale`: studies that are refused, runs that are only analysed, and a real nginx by its workers.

use weir_testkit::program::HasAll;
use weir_testkit::sandbox::{self, Sandbox, proxy_of};

const LOAD: &str = "  - {name: http, closed: true, connections: 16, duration: 3s}";

/// Returns a study of nginx that varies one parameter.
fn study(factor: &str) -> String {
    let proxy = "{kind: nginx, settings: {worker_processes: 1}}";
    sandbox::study(proxy, LOAD, &format!("a/a: false\none-at-a-time: {{{factor}}}\n"))
}

#[test]
fn studies_without_three_levels_of_a_number_are_refused_before_anything_is_started() {
    let sandbox = Sandbox::new();
    for (factor, message) in [
        ("worker_processes: [2]", "worker_processes has 2 levels"),
        ("gzip: [on, off]", "gzip has 0 levels"),
    ] {
        sandbox.write("study.yaml", &study(factor));
        let ended = sandbox.call("scale study.yaml --out 'a run'");
        ended.refused(&[message, "one-at-a-time: {worker_processes: [1, 2, 4]}"]);
        assert!(!sandbox.run_folder().exists());
    }
    let some = study("cpus: [1, 2]").replace("settings: {", "settings: {gzip: on, ");
    for (text, message, hint) in [
        (some.clone(), "some arms say how many CPUs", "`cpus: 1`"),
        (
            some.replace("gzip: on", "cpus: 1").replace("[1, 2]", "[1, 900]"),
            "has 900 CPUs",
            "leave that level out",
        ),
    ] {
        sandbox.write("study.yaml", &text);
        sandbox.call("run study.yaml --out 'a run'").refused(&[message, hint]);
        assert!(!sandbox.run_folder().exists());
    }
    sandbox.call("scale missing").refused(&["no study called `missing`"]);
}

#[test]
fn a_real_nginx_by_its_workers_and_the_same_run_again() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", &study("worker_processes: [1, 2, 4]"));
    let ended = sandbox.call("scale study.yaml --out 'a run' -q");
    // How much it grows is this machine's; that it is said is weir's.
    ended.with_code(0).stdout.has_all(&["Under the load http, the completed rate ", "http"]);
    let report = sandbox.read("report.md");
    report.has_all(&["## How does it grow?", "worker_processes=4", "| level | measured |"]);
    let json: serde_json::Value =
        sandbox.call("scale 'a run' --format json").with_code(0).document();
    let growth = &json["scaling"][0];
    assert_eq!(growth["factor"]["parameter"]["id"], "worker_processes");
    assert_eq!(growth["kind"], "servers");
    let levels = growth["measured"]["levels"].as_array().expect("levels");
    let x: Vec<f64> = levels.iter().filter_map(|level| level["x"].as_f64()).collect();
    assert_eq!(x, [1.0, 2.0, 4.0]);
    assert!(levels.iter().all(|level| level["value"].as_f64().is_some_and(|rate| rate > 0.0)));
    for option in ["--time 50%", "--check", "--fail-if worse", "--out other"] {
        let ended = sandbox.call(&format!("scale 'a run' {option}"));
        let name = option.split(' ').next().unwrap_or(option);
        ended.refused(&[name, "made already"]);
    }
}

#[test]
fn a_real_nginx_by_its_cpus_has_as_many_workers_and_no_others() {
    let sandbox = Sandbox::new();
    let proxy = "{kind: nginx, settings: {cpus: 1}}";
    let arms = "a/a: false\nbaseline: one\none-at-a-time: {cpus: 1..2}\n";
    sandbox.write("study.yaml", &sandbox::study(proxy, LOAD, arms));
    let ended = sandbox.call("run study.yaml --out 'a run' -q");
    ended.with_code(0).stdout.has_all(&["cpus: 1 → 2"]);
    let run = sandbox.records();
    let sets = run.header.study.arms.iter().zip(["1", "2"]).map(|(arm, count)| {
        assert_eq!(arm.settings["worker_processes"], count);
        let effective = &proxy_of(&run, &arm.name).expect("the arm ran").effective;
        assert_eq!([&effective["cpus"], &effective["worker_processes"]], [count, count]);
        arm.cpus.as_ref().expect("CPUs").cpus().to_vec()
    });
    let sets: Vec<Vec<u32>> = sets.collect();
    assert_eq!((sets[0].len(), sets[1].len()), (1, 2));
    assert_eq!(sets[0][0], sets[1][0]);
}
