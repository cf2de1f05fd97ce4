//! Tests of `weir report`, which needs only the run's folder, in every format.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use weir_model::fixture;
use weir_model::record::Record;
use weir_model::study::ArmRole;
use weir_record::RunWriter;
use weir_testkit::program::{Ended, HasAll, Running, run};
use weir_testkit::sandbox::Sandbox;

const ARMS: [&str; 3] = ["baseline", "same-as-baseline", "keeps-origin"];

/// Checks all formats of a complete run; part of the test that has made one.
pub(crate) fn of_a_complete_run(sandbox: &Sandbox) {
    let (html, markdown) = (sandbox.read("report.html"), sandbox.read("report.md"));
    has_all(&html);
    has_all(&markdown);
    loads_nothing(&html);

    // The same records give the same report.
    assert_eq!(report(sandbox, "--format html").stdout, html);
    assert_eq!(report(sandbox, "--format markdown").stdout, markdown);
    let terminal = report(sandbox, "--format terminal").stdout;
    let by_header = sandbox.call("report 'a run/run.json' --format terminal");
    assert_eq!(by_header.with_code(0).stdout, terminal);
    has_all(&terminal);
    assert!(!terminal.contains('\x1b'), "colours in a pipe:\n{terminal}");
    let json: serde_json::Value = report(sandbox, "--format json").document();
    let names = [0, 1].map(|load| &json["loads"][load]["load"]);
    assert_eq!(names, ["closed", "open"]);
    let csv = report(sandbox, "--format csv").stdout;
    let rate = &json["loads"][0]["arms"][2]["rate_completed"];
    let compared = find_row(&csv, "closed", "keeps-origin", "rate_completed_per_s");
    let (cell, rate) = (compared[6].parse::<f64>().ok(), rate.as_f64());
    let off = cell.zip(rate).map(|(cell, rate)| (cell / rate - 1.0).abs());
    assert!(off < Some(1e-11), "{cell:?} {rate:?}");
    assert_eq!(compared[7], "baseline");
    let baseline = find_row(&csv, "open", "baseline", "response_time_p99_ns");
    assert_eq!((baseline[1], baseline[7]), ("200", ""));

    assert_eq!(report(sandbox, "--format markdown -o else.md").stdout, "");
    assert_eq!(sandbox.read("../else.md"), markdown);
    fs::remove_file(sandbox.run_folder().join("report.html")).expect("it is there");
    let summary = report(sandbox, "").stdout;
    summary.has_all(&["judged by ", "Next: ", "report.html"]);
    assert!(summary.lines().count() <= 40, "{summary}");
    report(sandbox, "--full").stdout.has_all(&[&terminal, "report.html"]);
    assert_eq!(sandbox.read("report.html"), html);
}

fn report(sandbox: &Sandbox, more: &str) -> Ended {
    sandbox.call(&format!("report 'a run' {more}")).with_code(0)
}

fn find_row<'c>(csv: &'c str, load: &str, arm: &str, metric: &str) -> Vec<&'c str> {
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let row = rows.find(|row| row[0] == load && row[4] == arm && row[5] == metric);
    row.unwrap_or_else(|| panic!("{load} {arm} {metric}:\n{csv}"))
}

fn has_all(text: &str) {
    text.has_all(&ARMS);
    text.has_all(&["origin_keepalive", "closed", "open"]);
}

/// Checks that the page is complete in itself: it loads nothing.
fn loads_nothing(html: &str) {
    html.has_none(&["src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest"]);
    // A policy that forbids it.
    html.has("default-src 'none'");
}

#[test]
fn folders_that_hold_no_run() {
    let sandbox = Sandbox::new();
    sandbox
        .call("report nowhere")
        .refused_in_a_line(&["nowhere/run.json: No such file or directory"]);
    sandbox
        .call("report temporary")
        .refused_in_a_line(&["temporary is not a run folder: it has no run.json"]);
    fs::create_dir(sandbox.path("future")).unwrap();
    sandbox.write("future/run.json", r#"{"format": "weir-run/5", "everything": "else"}"#);
    sandbox.call("report future").refused_in_a_line(&[
        "future/run.json has format `weir-run/5`; this weir reads `weir-run/4`",
        "\nhint: ",
    ]);
    sandbox.write("future/run.json", "not json");
    sandbox.call("report future").refused_in_a_line(&["future/run.json:1: "]);
    sandbox.call("run --resume temporary").refused_in_a_line(&["temporary is not a run folder"]);
}

/// Checks that a run with incomplete figures is refused: wrong figures are worse than none.
#[test]
fn a_run_that_lacks_a_histogram_is_neither_reported_nor_resumed() {
    let sandbox = Sandbox::new();
    let arm = fixture::arm("stock", ArmRole::Baseline, &[]);
    let header = fixture::header(fixture::study(vec![arm]));
    let mut writer = RunWriter::create(&sandbox.path("cut"), &header, "").expect("a folder");
    let mut trial = fixture::trial("closed", "stock", 0);
    trial.response_time.tag = "closed/stock/0/response_time".to_owned();
    let written = writer.append(&Record::Trial(Box::new(trial)));
    written.expect("written");
    drop(writer);
    for command in ["report cut", "run --resume cut"] {
        sandbox.call(command).refused_in_a_line(&[
            "cut/records.jsonl:1: the histogram `closed/stock/0/response_time` must have 0 values",
            "but histograms.hlog does not have it\nhint: the run was damaged or mixed with another",
        ]);
    }
}

#[test]
fn formats_that_do_not_exist() {
    run("report x --format pdf").refused(&["pdf", "markdown", "html"]);
    run("report x -o y").refused(&["--format"]);
}

/// Writes a run to a folder of the place.
fn write_run(sandbox: &Sandbox, name: &str) {
    let arm = fixture::arm("stock", ArmRole::Baseline, &[]);
    let header = fixture::header(fixture::study(vec![arm]));
    let study = "headers: {authorization: Basic czNjcjN0, accept: x}\nnote: \"\x1b[2J\"\n";
    RunWriter::create(&sandbox.path(name), &header, study).expect("a folder");
}

#[test]
fn a_report_is_not_written_through_a_link() {
    let sandbox = Sandbox::new();
    write_run(&sandbox, "one");
    sandbox.write("victim", "whole");
    for name in ["report.html", "report.md", "report.html.tmp"] {
        symlink(sandbox.path("victim"), sandbox.path("one").join(name)).expect("own folder");
    }
    sandbox.call("report one").with_code(0);
    for name in ["one/report.html", "one/report.md"] {
        let metadata = fs::symlink_metadata(sandbox.path(name));
        assert!(metadata.is_ok_and(|metadata| metadata.is_file()), "{name}");
    }
    // Where others may make files, no more is the one that is named.
    let open = sandbox.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    symlink(sandbox.path("victim"), open.join("r.md")).unwrap();
    let refused = sandbox.call("report one --format markdown -o open/r.md").with_code(1);
    refused.says(&["cannot write open/r.md: others may write in its folder", "it is a link"]);
    assert_eq!(fs::read_to_string(sandbox.path("victim")).unwrap(), "whole");
}

#[test]
fn secrets_and_controls_of_a_study_are_in_no_report() {
    let sandbox = Sandbox::new();
    write_run(&sandbox, "one");
    for format in ["markdown", "html", "terminal", "json"] {
        let text = sandbox.call(&format!("report one --format {format}")).with_code(0).stdout;
        text.has_none(&["czNjcjN0", "\x1b"]);
    }
    // Nor does a path command the terminal that it is told on.
    let mut command = sandbox.weir(&["report", "no\x1b[2J\u{9b}31m\u{202e}such"]);
    let ended = Running::start(&mut command).end().with_code(2);
    ended.stderr.has("no\\u001b[2J\\u009b31m\\u202esuch/run.json");
    let mut command = sandbox.weir(&["report", "one", "--no\x1b[2J"]);
    Running::start(&mut command).end().with_code(2).stderr.has_none(&["\x1b"]);
}
