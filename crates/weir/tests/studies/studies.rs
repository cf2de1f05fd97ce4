//! Tests of `weir studies`: the ready-made studies, by name and as text.

use weir_testkit::program::{HasAll, Running, behind, run};
use weir_testkit::sandbox::Sandbox;

#[rustfmt::skip]
const NAMES: [&str; 17] = [
    "stock-reverse-proxy", "static-files", "requests-by-workers", "tls-transactions-by-workers",
    "throughput-by-workers", "held-connections", "kernel-backlog", "which-proxy", "tls-termination",
    "kernel-bypass", "kernel-bypass-direct", "worker-count", "cpus", "port-range", "keepalive-requests",
    "ingress-matrix", "same-twice",
];

#[test]
fn all_are_listed() {
    let text = format!("\n{}", run("studies").with_code(0).stdout);
    for name in NAMES {
        text.has(&format!("\n{name} "));
    }
}

#[test]
fn their_text_is_a_study_like_any_other() {
    let sandbox = Sandbox::new();
    for name in NAMES {
        let text = run(&format!("studies {name}")).with_code(0).stdout;
        sandbox.write("mine.yaml", &text);
        let [mine, named] = ["mine.yaml", name]
            .map(|study| sandbox.call(&format!("run --check {study}")).with_code(0).stdout);
        assert_eq!(mine, named);
    }
}

#[test]
fn an_unknown_one_is_refused_with_those_that_there_are() {
    let ended = run("studies nothing");
    ended.refused_in_a_line(&["no study called `nothing`", "\nhint: ", NAMES[0], NAMES[14]]);
}

/// Checks that the list is complete even if this machine has no room for one of the studies.
#[test]
fn one_that_does_not_fit_does_not_hide_the_others() {
    let sandbox = Sandbox::new();
    let mut weir = behind("ulimit -n 256", "studies");
    let ended = Running::start(weir.env("TMPDIR", sandbox.temporary())).end();
    let text = ended.with_code(0).stdout;
    for name in NAMES {
        let listed = text.lines().find(|line| line.starts_with(name));
        let line = listed.unwrap_or_else(|| panic!("{name}:\n{text}"));
        let fits = !line.contains("does not fit this machine: ");
        assert_eq!(fits, line.contains(" arms, ") || line.contains(" arm, "), "{line}");
    }
    assert!(text.contains("does not fit this machine: "), "{text}");
}

/// Checks that a hundred loads are described in one line, which includes the scale.
#[test]
fn a_matrix_is_one_line_of_a_check_and_has_the_scale_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let text = "weir: 1\nname: m\nquestion: Where?\nproxy: {kind: nginx}\n\
                loads:\n- {connections: 10..100 step 10, rate: 10..100 step 10, duration: 1m}\n";
    sandbox.write("matrix.yaml", text);
    let plain = sandbox.call("run --check matrix.yaml").with_code(0).stdout;
    plain.has_all(&["c10-r10 to c100-r100", "100 loads"]);
    assert!(plain.lines().count() < 10, "{plain}");
    let scaled = sandbox.call("run --check matrix.yaml --scale 2x").with_code(0).stdout;
    assert!(scaled.contains("c20-r20 to c200-r200"), "{scaled}");
    let ended = sandbox.call("run --check matrix.yaml --scale none");
    ended.refused_in_a_line(&["--scale: `none` is not a scale"]);
}

/// Checks that `--check` shows the time of a run, and the reason why it exceeds its share of time.
#[test]
fn a_whole_matrix_takes_half_an_hour_and_a_share_that_cannot_be_says_so() {
    let sandbox = Sandbox::new();
    let [plan, half, least] = ["", "--time 50%", "--time 5%"].map(|more| {
        let ended = sandbox.call(&format!("run ingress-matrix --check {more}"));
        ended.with_code(0).stdout
    });
    assert!(plan.contains("The whole run takes about 29 min"), "{plan}");
    assert!(!plan.contains("note"), "{plan}");
    half.has_all(&[
        "The whole run takes about 14 min",
        "load `c1000-r300` (and 29 other loads) is too short for the p50 that the study asks for",
    ]);
    least.has_all(&[
        "slices last 50 ms instead of 140 ms, so that each load has its 8 blocks",
        "--time 5% would be 1 min 28 s, but the run takes about 5 min 1 s: each of the 100 loads has at least 8 blocks",
        "From --time 17% on loads take their share",
    ]);
}
