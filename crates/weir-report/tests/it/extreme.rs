//! Tests with extreme input: nothing measured, too much measured, NaN, hostile names.

use std::time::Duration;

use weir_analysis::findings::{
    Basis, Findings, Holding, IdleLoad, LimitFindings, LimitReason, Verdict,
};
use weir_model::flow::{ArrivalsSpec, FlowSpec, TraceSpec};
use weir_model::load::{Close, Lifetime, Overflow, Spacing};
use weir_model::record::{EndRecord, Outcome, Record, Remark, Validity};
use weir_model::study::{ArmRole, Metric};
use weir_model::tls::{Resumption, TlsSpec, TlsVersion};
use weir_report::{html, markdown, terminal};

use crate::fixture::{self, Fixture};
use crate::markup::{self, flat, has_all, has_none};

/// Returns all three outputs, and checks the properties that hold for any input.
fn all(run: &Fixture) -> [String; 3] {
    let input = run.input();
    let outputs = [terminal(&input, false, 80), markdown(&input), html(&input)];
    markup::check(&outputs[2]);
    for output in &outputs {
        has_none(output, &["NaN", " inf", "\"inf", "-inf"]);
    }
    outputs
}

/// A change of the run, text that every output must then contain, and text that none may contain.
type Case = (fn(&mut Fixture), &'static [&'static str], &'static [&'static str]);

fn limit(arm: &str, verdict: Holding, value_ns: f64) -> LimitFindings {
    LimitFindings {
        arm: arm.to_owned(),
        metric: Metric::ResponseP99,
        limit_ns: 30_000_000,
        value_ns,
        interval_ns: (value_ns * 0.9, value_ns * 1.1),
        confidence: 0.95,
        n: 12,
        verdict,
        because: LimitReason::TookLonger { share: (0.001, 0.002) },
    }
}

fn limited(run: &mut Fixture) {
    run.header.study.objective.within = Some(Duration::from_millis(30));
    run.findings.loads[1].limits = vec![
        limit("stock", Holding::Holds, 2e6),
        limit("gzip", Holding::DoesNotHold, 4e7),
        limit("access_log off", Holding::NotShown, 3e7),
        limit("proxy_buffering off", Holding::Invalid, f64::NAN),
    ];
}

fn nothing_measured(run: &mut Fixture) {
    run.findings = Findings::default();
    run.records = vec![Record::End(EndRecord {
        error: "nginx: bind() to 127.0.0.1:20000 failed".to_owned(),
        ..EndRecord::new("", Outcome::Failed)
    })];
}

fn without_a_control(run: &mut Fixture) {
    for load in &mut run.findings.loads {
        load.arms[1].role = ArmRole::Change;
    }
}

fn differing_control(run: &mut Fixture) {
    let load = &mut run.findings.loads[0];
    let aa = load.arms[1].arm.clone();
    for found in &mut load.comparisons {
        if found.arm == aa && found.metric == Metric::Rate {
            *found = fixture::comparison(Metric::Rate, &aa, 1.07, 0.01);
        }
    }
}

fn alone(run: &mut Fixture) {
    run.header.study.arms.truncate(1);
    for load in &mut run.findings.loads {
        load.arms.truncate(1);
        load.comparisons.clear();
    }
}

fn renewed_and_encrypted(run: &mut Fixture) {
    let load = &mut run.header.study.loads[0];
    load.lifetime = Lifetime::Request;
    load.close = Close::Reset;
    load.beside.push(FlowSpec::held(10_000));
    load.tls = Some(TlsSpec {
        versions: vec![TlsVersion::V1_2],
        ciphers: vec!["ECDHE-RSA-AES256-GCM-SHA384".to_owned()],
        resumption: Resumption::Ratio(0.8),
        ..TlsSpec::default()
    });
}

fn pipelined_at_random(run: &mut Fixture) {
    let load = &mut run.header.study.loads[0];
    load.pipeline = 4;
    load.spacing = Spacing::Poisson { seed: 7 };
    load.overflow = Overflow::Drop;
}

fn of_a_trace(run: &mut Fixture) {
    let file = "access.log".to_owned();
    run.header.study.loads[0].arrivals = ArrivalsSpec::Trace(TraceSpec { file, speed: 2.0 });
}

fn throughput(run: &mut Fixture) {
    let load = &mut run.findings.loads[0];
    load.metrics[0] = Metric::ReceivedBytes;
    for comparison in &mut load.comparisons {
        if comparison.metric == Metric::Rate {
            comparison.metric = Metric::ReceivedBytes;
        }
    }
    load.arms[0].received_per_second = Some(1.1e9);
}

fn few_blocks(run: &mut Fixture) {
    run.findings.loads[0].comparisons.iter_mut().for_each(|found| found.confidence = 0.875);
}

fn too_few_blocks(run: &mut Fixture) {
    for found in &mut run.findings.loads[0].comparisons {
        found.confidence = 0.5;
        found.verdict = Verdict::Inconclusive;
    }
}

fn limited_by_connections(run: &mut Fixture) {
    run.findings.loads[0].idle =
        Some(IdleLoad { connections: 50, response_s: (0.002, 0.002), busiest: 0.3, others: None });
}

#[rustfmt::skip]
const CASES: [Case; 12] = [
    (limited_by_connections, &["The connections were the limit: 50 connections × 2.000 ms for a response allow 25,000/s"], &[]),
    (limited, &["99 within 30 ms", "within 30 ms; equivalence", "▲ holds", "▼ does not hold", "○ not shown to hold",
        "× invalid", "1.80 ms to 2.20 ms"], &[]),
    (nothing_measured, &["INVALID", "he run failed: nginx: bind() to"], &[]),
    (without_a_control, &["no A/A arm"], &[]),
    (differing_control, &["do not believe other effects of that size", "differs"], &[]),
    (alone, &[], &["othing could be compared", "A/A: "]),
    (renewed_and_encrypted, &["50 connections to each arm, 10,000 held idle, a connection for each request, \
        connections closed by a RESET, TLS 1.2 offered (ECDHE-RSA-AES256-GCM-SHA384), 80 % resumed, GET /"], &[]),
    (pipelined_at_random, &["Poisson arrivals (seed 7), requests dropped while no connection is idle, PIPELINED, \
        up to 4 on a connection, GET /"], &[]),
    (of_a_trace, &["arrivals of the trace access.log at 2 times its speed, GET / where the trace names no request"],
        &[]),
    (throughput, &["Gbit/s", "8.80"], &[]),
    (few_blocks, &["at 87.5 %"], &[]),
    // An interval that nobody should believe is not shown.
    (too_few_blocks, &[], &["50 %)", "2.58–2.65"]),
];

#[test]
fn what_follows_from_a_run_is_said_by_every_output() {
    for (place, (change, says, never)) in CASES.into_iter().enumerate() {
        let mut run = fixture::run();
        change(&mut run);
        for output in all(&run) {
            println!("row {place}");
            let output = flat(&output.replace('\u{a0}', " "));
            has_all(&output, says);
            has_none(&output, never);
        }
    }
}

#[test]
fn what_was_not_measured_or_compared_is_an_empty_cell() {
    let mut run = fixture::run();
    let [first, second, ..] = &mut run.findings.loads[..] else {
        panic!("two loads");
    };
    (first.blocks_used, first.arms[0].rate_completed) = (0, 0.0);
    for found in &mut second.comparisons {
        (found.verdict, found.confidence, found.p) = (Verdict::Invalid, 0.0, 1.0);
    }
    let (load, other) = (first.load.clone(), second.load.clone());
    let csv = weir_report::csv::findings(&run.findings).text();
    let rows = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let rows: Vec<_> = rows.collect();
    assert!(rows.iter().any(|row| row[0] == load) && rows.iter().any(|row| row[15] == "invalid"));
    for row in rows {
        assert_eq!(row[6].is_empty(), row[0] == load, "{row:?}");
        let compared = row[8..15].iter().any(|cell| !cell.is_empty());
        assert_eq!(compared, row[0] != other && !row[7].is_empty(), "{row:?}");
    }
}

#[test]
fn arms_without_a_single_figure() {
    let mut run = fixture::run();
    for load in &mut run.findings.loads {
        load.comparisons.clear();
        load.blocks_used = 0;
        for arm in &mut load.arms {
            arm.samples = 0;
            arm.rate_completed = f64::NAN;
            arm.cpu_per_request_ns = None;
            arm.percentile_curve.clear();
            arm.over_time.clear();
        }
    }
    let [_, _, page] = all(&run);
    // No figures, no charts.
    has_none(&page, &["<svg class=\"chart"]);
}

#[test]
fn one_block_and_one_point() {
    let mut run = fixture::run();
    for load in &mut run.findings.loads {
        load.arms.truncate(2);
        load.arms[0].over_time.truncate(1);
        load.arms[1].over_time = vec![(f64::NAN, f64::INFINITY, Some(0))];
        load.arms[0].percentile_curve = vec![(1.0, 0)];
        load.arms[1].percentile_curve = vec![(f64::INFINITY, 5), (f64::NAN, 5)];
    }
    all(&run);
}

#[test]
fn ratios_that_are_none_or_beyond_all_bounds() {
    let mut run = fixture::run();
    let odd = [
        (f64::NAN, (f64::NAN, f64::NAN)),
        (f64::INFINITY, (1.0, f64::INFINITY)),
        (0.0, (0.0, 0.0)),
        (1e12, (1e-12, f64::INFINITY)),
        (1.5, (0.0, f64::INFINITY)),
        (1e-9, (1e-10, 1e-8)),
        (-3.0, (-4.0, -2.0)),
    ];
    for load in &mut run.findings.loads {
        for (index, comparison) in load.comparisons.iter_mut().enumerate() {
            (comparison.ratio, comparison.interval) = odd[index % odd.len()];
            comparison.p = f64::NAN;
            comparison.p_holm = f64::NAN;
            comparison.minimum_detectable = f64::NAN;
            comparison.verdict = [Verdict::Invalid, Verdict::Inconclusive][index % 2];
            let bases = [Basis::FewAnswers, Basis::ContainsOne];
            comparison.because = bases[index % 2].clone().into();
        }
    }
    all(&run);
}

/// Returns forty arms, each with a name of sixty characters.
pub(crate) fn crowd() -> Fixture {
    let mut run = fixture::run();
    let planned = run.header.study.arms[2].clone();
    for number in 8..40 {
        let name = format!("arm-{number}-with-a-name-that-says-everything-");
        let name = format!("{name:0<60}");
        let mut arm = planned.clone();
        arm.name.clone_from(&name);
        run.header.study.arms.push(arm);
        for load in &mut run.findings.loads {
            let mut findings = load.arms[number % 8].clone();
            findings.arm.clone_from(&name);
            findings.role = ArmRole::Change;
            load.arms.push(findings);
            for metric in load.metrics.clone() {
                let ratio = 0.5 + number as f64 / 8.0;
                load.comparisons.push(fixture::comparison(metric, &name, ratio, 0.05));
            }
        }
    }
    run
}

#[test]
fn forty_arms_with_long_names() {
    let run = crowd();
    let [text, _, page] = all(&run);
    markup::keep("crowd.html", &page);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let name = &run.header.study.arms[39].name;
    assert!(text.contains(name.as_str()), "no name is cut off");
}

#[test]
fn an_answer_for_each_load_is_a_paragraph_each() {
    let mut run = fixture::run();
    run.answer = "Under one load: so.\nUnder another: not so.".to_owned();
    let [text, md, page] = all(&run);
    assert!(text.contains("\nUnder one load: so.\nUnder another: not so.\n"));
    assert!(md.contains("Under one load: so.\n\nUnder another: not so.\n"));
    assert!(page.contains("<p>Under one load: so.</p><p>Under another: not so.</p>"));
}

#[test]
fn names_that_are_markup_stay_names() {
    let hostile = "</title></script><script>alert(1)</script>\"'|`*[x](y)\x1b[2J";
    let mut run = fixture::run();
    run.header.study.title = hostile.to_owned();
    run.header.study.question = hostile.to_owned();
    run.answer = hostile.to_owned();
    run.study_text = format!("```\n{hostile}\n````");
    run.header.remarks = vec![Remark::of_run(hostile)];
    run.header.study.arms[2].name = hostile.to_owned();
    for load in &mut run.findings.loads {
        load.load = hostile.to_owned();
        load.arms[2].arm = hostile.to_owned();
        for comparison in &mut load.comparisons {
            comparison.because = Basis::CpuTimeUnseen { arm: hostile.to_owned() }.into();
            if comparison.arm.starts_with("keepalive") {
                comparison.arm = hostile.to_owned();
            }
        }
        for reason in &mut load.reasons {
            reason.reason.subject = Some(hostile.to_owned());
            reason.arms = vec![hostile.to_owned()];
        }
    }
    let [text, md, page] = all(&run);
    assert_eq!(page.matches("<script").count(), 1, "ours alone");
    assert!(!text.contains('\x1b'));
    let before_study = md.split("`````yaml").next().unwrap();
    assert!(!before_study.contains("](y)") || before_study.contains("\\](y)"));
    assert!(!before_study.contains("<script>") || before_study.contains("\\<script\\>"));
    // The fence outlasts the text's own.
    has_all(&md, &["\n`````yaml\n"]);
}

#[test]
fn a_load_that_is_not_to_be_used_says_why_before_any_figure() {
    let mut run = fixture::run();
    let open = &mut run.findings.loads[1];
    open.validity = Validity::Invalid;
    open.reasons[0].arms = open.arms.iter().map(|arm| arm.arm.clone()).collect();
    let [text, md, page] = all(&run);
    let sentence = "open is INVALID and says nothing: the hypervisor kept";
    for output in [&text, &md, &page] {
        // Beside the answer.
        has_all(&flat(output), &[sentence]);
    }
    assert!(text.contains("all arms"));
    assert!(!text.contains("p99"), "no table of such a load: {text}");
    let open = page.split("id=\"load-2\"").nth(1).unwrap();
    let (reasons, figures) = open.split_once("<details class=\"unusable\">").unwrap();
    assert!(reasons.contains("generator-busy") && !reasons.contains("<table"));
    assert!(figures.contains("<table"));
}

#[test]
fn a_metric_without_one_comparison_has_its_reasons_and_no_table() {
    let mut run = fixture::run();
    for found in &mut run.findings.loads[1].comparisons {
        if found.metric == Metric::ResponseP99 {
            found.verdict = Verdict::Invalid;
            found.because = Basis::NoValidBlock { blocks: 748 }.into();
        }
    }
    for output in all(&run).map(|output| output.to_lowercase()) {
        assert!(output.contains("nothing could be compared"), "{output}");
        let times = output.matches("none of 748 blocks").count();
        assert_eq!(times, 1, "what holds for all is said once: {output}");
    }
}

#[test]
fn what_was_not_kept_is_no_figure_and_no_column() {
    let mut run = fixture::run();
    run.findings.loads.truncate(1);
    for arm in &mut run.findings.loads[0].arms {
        arm.service_ns = [0; 5];
        arm.dispatch_lag_ns = [0; 5];
    }
    let [_, md, page] = all(&run);
    assert!(!page.contains("service<small>") && !page.contains("dispatch lag"));
    assert!(!md.contains(" 0 ns"), "{md}");
}

#[test]
fn figures_of_each_load_stand_beside_what_was_measured_under_it() {
    let mut run = fixture::run();
    let published = run.header.study.published.as_mut().expect("the fixture has figures");
    let figures = std::mem::take(&mut published.figures);
    let larger = [("workers=16", 342_651.0), ("workers=4", 148_936.0)];
    let mut closed_figures = figures.clone();
    closed_figures.extend(larger.map(|(arm, figure)| (arm.to_owned(), figure)));
    published.by_load =
        [("closed".to_owned(), closed_figures), ("open".to_owned(), figures)].into();
    for text in all(&run) {
        assert_eq!(text.matches("under load closed (VALID)").count(), 1);
        assert_eq!(text.matches("under load open (SUSPECT)").count(), 1);
        assert_eq!(text.matches("342,651").count(), 1, "{text}");
        assert!(text.find("workers=4") < text.find("workers=16"));
        assert_eq!(text.matches("not measured").count(), 2, "{text}");
    }
}
