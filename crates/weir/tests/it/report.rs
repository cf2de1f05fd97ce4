//! Tests of `weir report`, which needs only the run's folder, in every format.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use weir_model::fixture;
use weir_model::record::Record;
use weir_model::study::ArmRole;
use weir_record::RunWriter;

use crate::place::Place;
use crate::program::{Ended, HasAll, Running, run};

const ARMS: [&str; 3] = ["baseline", "same-as-baseline", "keeps-origin"];

/// Checks all formats of a complete run; part of the test that has made one.
pub(crate) fn of_a_complete_run(place: &Place) {
    let (html, markdown) = (place.read("report.html"), place.read("report.md"));
    has_all(&html);
    has_all(&markdown);
    loads_nothing(&html);

    let weir = |more: &str| -> Ended { place.ends(&format!("report 'a run' {more}")).with_code(0) };
    // The same records give the same report.
    assert_eq!(weir("--format html").stdout, html);
    assert_eq!(weir("--format markdown").stdout, markdown);
    let terminal = weir("--format terminal").stdout;
    let by_header = place.ends("report 'a run/run.json' --format terminal");
    assert_eq!(by_header.with_code(0).stdout, terminal);
    has_all(&terminal);
    assert!(!terminal.contains('\x1b'), "colours in a pipe:\n{terminal}");
    let json: serde_json::Value = weir("--format json").document();
    let names = [0, 1].map(|load| &json["loads"][load]["load"]);
    assert_eq!(names, ["closed", "open"]);
    let csv = weir("--format csv").stdout;
    let row = |load: &str, arm: &str, metric: &str| {
        let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let row = rows.find(|row| row[0] == load && row[4] == arm && row[5] == metric);
        row.unwrap_or_else(|| panic!("{load} {arm} {metric}:\n{csv}"))
    };
    let rate = &json["loads"][0]["arms"][2]["rate_completed"];
    let compared = row("closed", "keeps-origin", "rate_completed_per_s");
    let (cell, rate) = (compared[6].parse::<f64>().ok(), rate.as_f64());
    let off = cell.zip(rate).map(|(cell, rate)| (cell / rate - 1.0).abs());
    assert!(off < Some(1e-11), "{cell:?} {rate:?}");
    assert_eq!(compared[7], "baseline");
    let baseline = row("open", "baseline", "response_time_p99_ns");
    assert_eq!((baseline[1], baseline[7]), ("200", ""));

    assert_eq!(weir("--format markdown -o else.md").stdout, "");
    assert_eq!(place.read("../else.md"), markdown);
    fs::remove_file(place.run_folder().join("report.html")).expect("it is there");
    let summary = weir("").stdout;
    summary.has_all(&["judged by ", "Next: ", "report.html"]);
    assert!(summary.lines().count() <= 40, "{summary}");
    weir("--full").stdout.has_all(&[&terminal, "report.html"]);
    assert_eq!(place.read("report.html"), html);
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
    let place = Place::new();
    let report = |folder: &str| Running::start(&mut place.weir(&["report", folder])).end();
    report("nowhere").refused_in_a_line(&["nowhere/run.json: No such file or directory"]);
    report("temporary").refused_in_a_line(&["temporary is not a run folder: it has no run.json"]);
    fs::create_dir(place.path("future")).unwrap();
    place.write("future/run.json", r#"{"format": "weir-run/4", "everything": "else"}"#);
    report("future").refused_in_a_line(&[
        "future/run.json has format `weir-run/4`; this weir reads `weir-run/3`",
        "\nhint: ",
    ]);
    place.write("future/run.json", "not json");
    report("future").refused_in_a_line(&["future/run.json:1: "]);
    let resumed = place.ends("run --resume temporary");
    resumed.refused_in_a_line(&["temporary is not a run folder"]);
}

/// Checks that a run with incomplete figures is refused: wrong figures are worse than none.
#[test]
fn a_run_that_lacks_a_histogram_is_neither_reported_nor_resumed() {
    let place = Place::new();
    let arm = fixture::arm("stock", ArmRole::Baseline, &[]);
    let header = fixture::header(fixture::study(vec![arm]));
    let mut writer = RunWriter::create(&place.path("cut"), &header, "").expect("a folder");
    let mut trial = fixture::trial("closed", "stock", 0);
    trial.response_time.tag = "closed/stock/0/response_time".to_owned();
    let written = writer.append(&Record::Trial(Box::new(trial)));
    written.expect("written");
    drop(writer);
    for command in ["report cut", "run --resume cut"] {
        place.ends(command).refused_in_a_line(&[
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
fn made(place: &Place, name: &str) {
    let arm = fixture::arm("stock", ArmRole::Baseline, &[]);
    let header = fixture::header(fixture::study(vec![arm]));
    let study = "headers: {authorization: Basic czNjcjN0, accept: x}\nnote: \"\x1b[2J\"\n";
    RunWriter::create(&place.path(name), &header, study).expect("a folder");
}

#[test]
fn a_report_is_not_written_through_a_link() {
    let place = Place::new();
    made(&place, "one");
    place.write("victim", "whole");
    for name in ["report.html", "report.md", "report.html.tmp"] {
        symlink(place.path("victim"), place.path("one").join(name)).expect("own folder");
    }
    place.ends("report one").with_code(0);
    let is_file = |name: &str| fs::symlink_metadata(place.path(name)).is_ok_and(|it| it.is_file());
    assert!(is_file("one/report.html") && is_file("one/report.md"));
    // Where others may make files, no more is the one that is named.
    let open = place.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    symlink(place.path("victim"), open.join("r.md")).unwrap();
    let refused = place.ends("report one --format markdown -o open/r.md").with_code(1);
    refused.says(&["cannot write open/r.md: others may write in its folder", "it is a link"]);
    assert_eq!(fs::read_to_string(place.path("victim")).unwrap(), "whole");
}

#[test]
fn secrets_and_controls_of_a_study_are_in_no_report() {
    let place = Place::new();
    made(&place, "one");
    for format in ["markdown", "html", "terminal", "json"] {
        let text = place.ends(&format!("report one --format {format}")).with_code(0).stdout;
        text.has_none(&["czNjcjN0", "\x1b"]);
    }
    // Nor does a path command the terminal that it is told on.
    let mut command = place.weir(&["report", "no\x1b[2J\u{9b}31m\u{202e}such"]);
    let told = Running::start(&mut command).end().with_code(2);
    told.stderr.has("no\\u001b[2J\\u009b31m\\u202esuch/run.json");
    let mut command = place.weir(&["report", "one", "--no\x1b[2J"]);
    let told = Running::start(&mut command).end().with_code(2);
    told.stderr.has_none(&["\x1b"]);
}
