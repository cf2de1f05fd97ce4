//! Tests of matrices of loads, inert levels and published response times, in all outputs.

use std::time::Duration;

use weir_analysis::findings::{Ineffective, InertArm, MisreadArm, Verdict};
use weir_model::record::{Inert, Validity};
use weir_model::study::{MatrixCell, Metric, PublishedQuantile, PublishedTimes, StudyArrivals};
use weir_parameters::Counter;
use weir_report::{html, markdown, terminal};

use crate::fixture::{self, Fixture};
use crate::markup::{self, flat, has_all, has_none};

const CONNECTIONS: [u32; 3] = [100, 200, 300];
const RATES: [f64; 2] = [100.0, 1000.0];

/// Returns the fixture's open load as every cell of a matrix. The last cell is INVALID.
pub(crate) fn matrix() -> Fixture {
    let mut run = fixture::run();
    let spec = run.header.study.loads[1].clone();
    let findings = run.findings.loads[1].clone();
    run.header.study.loads.clear();
    run.findings.loads.clear();
    for connections in CONNECTIONS {
        for rate in RATES {
            let name = format!("c{connections}-r{rate}");
            let mut cell_spec = spec.clone();
            cell_spec.name.clone_from(&name);
            cell_spec.connections = connections;
            cell_spec.arrivals = StudyArrivals::Constant(rate);
            cell_spec.cell =
                Some(MatrixCell { matrix: String::new(), connections, rate: Some(rate) });
            run.header.study.loads.push(cell_spec);
            let mut cell_findings = findings.clone();
            cell_findings.load = name;
            cell_findings.rate_intended = Some(rate);
            let factor = u64::from(connections / 100);
            for arm in &mut cell_findings.arms {
                arm.response_ns = arm.response_ns.map(|ns| ns * factor);
                arm.percentile_curve.iter_mut().for_each(|point| point.1 *= factor);
            }
            cell_findings.validity = Validity::Valid;
            cell_findings.reasons.clear();
            run.findings.loads.push(cell_findings);
        }
    }
    run.findings.loads[5].validity = Validity::Invalid;
    run.header.study.objective.metric = Metric::ResponseP50;
    run
}

fn times(arm: &str, p50: (u64, u64), p99: (u64, u64)) -> PublishedTimes {
    let quantiles = [(0.5, p50), (0.99, p99)].map(|(quantile, (low, high))| PublishedQuantile {
        quantile,
        low: Duration::from_millis(low),
        high: Duration::from_millis(high),
    });
    PublishedTimes {
        arm: arm.to_owned(),
        load: None,
        connections: Some((200, 300)),
        rate: None,
        unchanged: false,
        quantiles: quantiles.into(),
    }
}

fn inert(arm: &str, id: &str, whole: bool) -> InertArm {
    InertArm {
        arm: arm.to_owned(),
        levels: vec![Inert {
            id: id.to_owned(),
            requested: "4096".to_owned(),
            effective: "listen backlog 128".to_owned(),
            why: "net.core.somaxconn is 128".to_owned(),
        }],
        whole,
    }
}

/// Returns all outputs, without line breaks and no-break spaces that would divide expected words.
fn outputs(run: &Fixture) -> [String; 3] {
    let input = run.input();
    let page = html(&input);
    markup::check(&page);
    let text = terminal(&input, false, 200);
    [flat(&text), markdown(&input), page.replace('\u{a0}', " ")]
}

#[test]
fn a_matrix_has_a_summary_and_a_suite_for_each_arm_in_all_outputs() {
    let run = matrix();
    for output in outputs(&run) {
        let size = "100 to 300 connections to each arm";
        has_all(&output, &[size, "5 of 6 loads can be used", "Suite gzip"]);
        has_none(&output, &["NaN"]);
    }
    insta::assert_snapshot!("matrix_terminal", terminal(&run.input(), false, 100));
}

#[test]
fn a_page_of_a_matrix_has_a_plot_for_each_suite_and_folds_the_loads() {
    let run = matrix();
    let page = html(&run.input());
    markup::keep("matrix.html", &page);
    // Eight arms, two widths; no other chart.
    assert_eq!(page.matches("class=\"chart ").count(), 16);
    let suites = "100 connections, 200 connections, 300 connections";
    has_all(&page, &[&format!("One line for each number of connections: {suites}")]);
    // Cells have no section of their own.
    has_none(&page, &["Load c100-r100"]);
    assert_eq!(page.matches("<th scope=\"rowgroup\"").count(), 6);
    assert!(page.contains(">×</td>"), "the INVALID cell is marked");
}

#[test]
fn suites_share_their_axes() {
    let mut run = matrix();
    for load in &mut run.findings.loads {
        load.arms[0].percentile_curve.iter_mut().for_each(|point| point.1 *= 100);
    }
    let page = html(&run.input());
    let [first, last] = [0, 5].map(|suite| {
        let id = format!("id=\"c{}-w-t\"", suite + 1);
        let chart = page.split(&id).nth(1).unwrap().split("</svg>").next().unwrap();
        chart
            .split("class=\"tick\"")
            .skip(1)
            .map(|tick| tick.split('<').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    });
    assert_eq!(first, last);
}

#[test]
fn one_invalid_cell_does_not_spoil_the_answer_and_most_do() {
    let mut run = matrix();
    assert!(terminal(&run.input(), false, 100).contains("SUSPECT, judged by"));
    for load in &mut run.findings.loads[..3] {
        load.validity = Validity::Invalid;
    }
    assert!(terminal(&run.input(), false, 100).contains("INVALID, judged by"));
}

#[test]
fn an_arm_whose_levels_are_not_in_force_is_inert_and_not_equivalent() {
    let mut run = fixture::run();
    let (whole, part) = ("worker_connections", "proxy_buffering off");
    run.findings.inert =
        vec![inert(whole, "worker_connections", true), inert(part, "backlog", false)];
    // One differs all the same.
    let misread = MisreadArm {
        arm: "gzip".to_owned(),
        against: "stock".to_owned(),
        levels: inert("gzip", "gzip", true).levels,
        load: "closed".to_owned(),
        metric: Metric::Rate,
        ratio: 0.94,
    };
    run.findings.misread = vec![misread];
    for output in outputs(&run) {
        has_all(&output, &["◇ inert", "◇ partly inert", "Levels that are not in force"]);
        has_all(&output, &["net.core.somaxconn is 128", "▼ worse"]);
        let words = output.split_whitespace().collect::<Vec<_>>().join(" ");
        has_all(&words, &["the reading is wrong or something else differs"]);
        // The published effect of an arm that is not in force is not refuted by it.
        has_all(&output, &["inert here"]);
        has_none(&output, &["no effect here"]);
    }
    let text = terminal(&run.input(), false, 200);
    let row = text.lines().find(|line| line.starts_with(whole)).unwrap();
    has_all(row, &["inert"]);
    has_none(row, &["equivalent"]);
}

#[test]
fn a_change_whose_counter_did_not_move_did_not_take_effect() {
    let mut run = fixture::run();
    let without = "worker_connections";
    let ineffective = [without, "gzip"].map(|name| Ineffective {
        arm: name.to_owned(),
        against: "stock".to_owned(),
        id: name.to_owned(),
        level: "64".to_owned(),
        counter: Counter::OriginConnections,
        value: 1.0,
        other: 1.0,
        because: None,
    });
    run.findings.loads[0].ineffective = ineffective.into();
    for output in outputs(&run) {
        let words = output.split_whitespace().collect::<Vec<_>>().join(" ");
        has_all(
            &words,
            &["1.000 connections to the origin server per request, and 1.000 in stock"],
        );
        has_all(&output, &["◇ did not take effect", "▼ worse"]);
    }
    let text = terminal(&run.input(), false, 200);
    let row = text.lines().find(|line| line.starts_with(without)).unwrap();
    has_all(row, &["did not take effect"]);
    has_none(row, &["equivalent"]);
}

#[test]
fn published_times_stand_beside_ours_with_a_verdict() {
    let mut run = matrix();
    // Published: a quarter of p99. Measured: equivalent, better by far, and within.
    let with_keepalive = "keepalive to the origin";
    for (arm, ratio, interval, verdict) in [
        ("gzip", 1.0, (0.99, 1.01), Verdict::Equivalent),
        ("access_log off", 1.0, (0.99, 1.01), Verdict::Equivalent),
        (with_keepalive, 0.24, (0.2, 0.28), Verdict::Better),
    ] {
        for load in &mut run.findings.loads {
            for c in load.comparisons.iter_mut().filter(|c| c.arm == arm) {
                (c.ratio, c.interval, c.verdict) = (ratio, interval, verdict);
            }
        }
    }
    let published = run.header.study.published.as_mut().unwrap();
    published.figures.clear();
    published.times = ["gzip", "access_log off", with_keepalive]
        .map(|arm| times(arm, (50, 60), (240, 250)))
        .into();
    published.times.insert(0, times("stock", (200, 300), (1000, 1000)));
    let since = "the default is another one since 2019";
    published.dated = [("access_log off".to_owned(), since.to_owned())].into();
    for output in outputs(&run) {
        has_all(&output, &["no effect here", "obsolete", since, "confirmed"]);
        has_all(&output, &["200ms to 300ms", "0.240× to 0.250×"]);
        // Of the cells that it is for, the hardest that may be used: c300-r1000 is INVALID.
        has_all(&output, &["c300-r100 (VALID)"]);
    }
}

#[test]
fn a_run_is_repeated_with_its_options() {
    let mut run = matrix();
    run.header.study.scale = Some(0.25);
    run.header.check_alone = true;
    run.header.time = Some("50%".to_owned());
    let [_, text, page] = outputs(&run);
    let command = "weir run study.yaml --time 50% --scale 0.25x --check-alone";
    assert!(text.contains(command));
    assert!(page.contains(command));
}
