//! Tests of `--fail-if` with `weir load` and `weir run`: the exit code agrees with the result.

use weir_testkit::loads::Server;
use weir_testkit::program::{HasAll, Running, row, weir};
use weir_testkit::sandbox::{self, Sandbox};
use weir_testkit::{faulty, origin};

#[test]
fn a_load_fails_by_its_figures_and_only_where_they_may_be_used() {
    let origin = faulty::start_origin();
    #[rustfmt::skip]
    let rows = [
        ("--fail-if p99>1us", 3, "--fail-if p99>1us: p99 is "),
        ("--fail-if p99>60s", 0, ""),
        ("--fail-if rate>1/s --fail-if errors>0", 3, "--fail-if rate>1/s: rate is "),
        ("--fail-if errors>0 --fail-if rate<1", 0, ""),
        // Nothing is answered with that status, so the figures are INVALID; that is said of errors alone.
        ("--fail-if errors>1% -e status=404", 3, "errors is 100%, above 1%"),
        ("--fail-if p50<60s -e status=404", 1, "the result is INVALID (failures: "),
        ("--fail-if invalid -e status=404", 3, "--fail-if invalid: the result is INVALID (failures: "),
    ];
    for (flags, code, words) in rows {
        row(flags);
        // Without times to doubt: what a busy machine does to them is not what is asked here.
        let ended = origin.load(&format!("-q -n 100 -c 1 -t 1 {flags}"));
        let is_doubted = ended.stdout.contains("INVALID") && !flags.contains("404");
        if !is_doubted {
            let stdout = ended.with_code(code).says(&[words]).stdout;
            assert!(!stdout.is_empty(), "the result is printed all the same");
        }
    }
}

#[test]
fn a_window_in_which_it_is_true_is_named() {
    let (_server, address) = origin::start("--size 1 --stall 1s@500ms");
    let url = format!("http://{address}/");
    let words = [
        "load",
        "-q",
        "-d",
        "3",
        "-R",
        "100",
        "-c",
        "4",
        "-t",
        "1",
        "--fail-if",
        "p99 > 300ms in 1s",
        &url,
    ];
    let ended = Running::start(&mut weir(words)).end();
    // A machine that was too busy to send in time spoils the figures, and that is said.
    if ended.stdout.contains("INVALID") {
        ended.with_code(1).says(&["so it cannot be judged"])
    } else {
        ended.with_code(3).says(&["above 300 ms from ", "of 3 windows of 1s"])
    };
}

#[test]
fn a_run_fails_by_its_verdicts() {
    let sandbox = Sandbox::new();
    let load = "- {name: closed, closed: true, connections: 4, duration: 2s}";
    let proxy = "{kind: nginx, settings: {worker_processes: 1}}";
    let text = sandbox::study(proxy, load, "");
    sandbox.write("study.yaml", &text);
    for (condition, message) in [
        ("nobody worse", "the study has no arm `nobody`"),
        ("p95 > 3ms", "p50, p90, p99 and p99.9"),
    ] {
        let words = ["run", "study.yaml", "--fail-if", condition];
        Running::start(&mut sandbox.weir(&words)).end().refused_in_a_line(&[message]);
    }
    let words =
        ["run", "study.yaml", "--out", "a run", "--fail-if", "p50 > 1us", "--fail-if", "invalid"];
    // A machine that spoils every block gives INVALID, which is a condition too.
    let ended = Running::start(&mut sandbox.weir(&words)).end().with_code(3);
    ended.stderr.has("--fail-if ");
    ended.stdout.has("Report: ");
    sandbox.assert_clean();
}
