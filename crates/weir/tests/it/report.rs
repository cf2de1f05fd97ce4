//! `weir report`: from the folder alone, in every format.

use std::fs;

use weir_model::fixture;
use weir_model::record::Record;
use weir_model::study::ArmRole;
use weir_record::RunWriter;

use crate::place::Place;
use crate::program::{Ended, HasAll, Running, run};

const ARMS: [&str; 3] = ["baseline", "same-as-baseline", "keeps-origin"];

/// All formats of a complete run; part of the test that has made one.
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

    assert_eq!(weir("--format markdown -o else.md").stdout, "");
    assert_eq!(place.read("../else.md"), markdown);
    fs::remove_file(place.run_folder().join("report.html")).expect("it is there");
    let again = weir("").stdout;
    again.has_all(&[&terminal, "report.html"]);
    assert_eq!(place.read("report.html"), html);
}

fn has_all(text: &str) {
    text.has_all(&ARMS);
    text.has_all(&["origin_keepalive", "closed", "open"]);
}

/// The page is complete in itself: no address in it is ever asked.
fn loads_nothing(html: &str) {
    html.has_none(&[
        "src=",
        "<link",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
    ]);
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
    place.write(
        "future/run.json",
        r#"{"format": "weir-run/3", "everything": "else"}"#,
    );
    report("future").refused_in_a_line(&[
        "future/run.json has format `weir-run/3`; this weir reads `weir-run/2`",
        "\nhint: ",
    ]);
    place.write("future/run.json", "not json");
    report("future").refused_in_a_line(&["future/run.json:1: "]);
    let resumed = place.ends("run --resume temporary");
    resumed.refused_in_a_line(&["temporary is not a run folder"]);
}

/// Other figures than those that were measured are worse than none.
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
