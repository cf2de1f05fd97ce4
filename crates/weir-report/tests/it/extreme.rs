//! Input at the edges: nothing measured, too much measured, numbers that are none, hostile names.

use weir_analysis::findings::{Findings, Verdict};
use weir_model::record::{EndRecord, Outcome, Record, Remark, Validity};
use weir_model::study::{ArmRole, Metric};
use weir_report::{html, markdown, terminal};

use crate::fixture::{self, Fixture};
use crate::markup;

/// All three outputs; checks what must hold whatever the input.
fn all(run: &Fixture) -> [String; 3] {
    let input = run.input();
    let outputs = [terminal(&input, false, 80), markdown(&input), html(&input)];
    markup::check(&outputs[2]);
    for output in &outputs {
        for bad in ["NaN", " inf", "\"inf", "-inf"] {
            assert!(!output.contains(bad), "{bad} in {output}");
        }
    }
    outputs
}

#[test]
fn nothing_was_measured() {
    let mut run = fixture::run();
    run.findings = Findings::default();
    run.records = vec![Record::End(EndRecord {
        at: String::new(),
        outcome: Outcome::Failed,
        error: "nginx: bind() to 127.0.0.1:20000 failed".to_owned(),
    })];
    for output in all(&run) {
        assert!(output.contains("INVALID"), "{output}");
        assert!(
            output.contains("he run failed: nginx: bind() to"),
            "{output}"
        );
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
    assert!(
        !page.contains("<svg class=\"chart"),
        "no figures, no charts"
    );
}

#[test]
fn one_block_and_one_point() {
    let mut run = fixture::run();
    for load in &mut run.findings.loads {
        load.arms.truncate(2);
        load.arms[0].over_time.truncate(1);
        load.arms[1].over_time = vec![(f64::NAN, f64::INFINITY, 0)];
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
        }
    }
    all(&run);
}

/// Forty arms, each name sixty characters.
pub(crate) fn crowd() -> Fixture {
    let mut run = fixture::run();
    let planned = run.header.study.arms[2].clone();
    for number in 8..40 {
        let name = format!(
            "{:0<60}",
            format!("arm-{number}-with-a-name-that-says-everything-")
        );
        let mut arm = planned.clone();
        arm.name.clone_from(&name);
        run.header.study.arms.push(arm);
        for load in &mut run.findings.loads {
            let mut found = load.arms[number % 8].clone();
            found.arm.clone_from(&name);
            found.role = ArmRole::Change;
            load.arms.push(found);
            for metric in load.metrics.clone() {
                let ratio = 0.5 + number as f64 / 8.0;
                load.comparisons
                    .push(fixture::comparison(metric, &name, ratio, 0.05));
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
    run.findings.answer = "Under one load: so.\nUnder another: not so.".to_owned();
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
    run.findings.answer = hostile.to_owned();
    run.study_text = format!("```\n{hostile}\n````");
    run.header.remarks = vec![Remark::of_run(hostile)];
    run.header.study.arms[2].name = hostile.to_owned();
    for load in &mut run.findings.loads {
        load.load = hostile.to_owned();
        load.arms[2].arm = hostile.to_owned();
        for comparison in &mut load.comparisons {
            comparison.because = hostile.to_owned();
            if comparison.arm.starts_with("keepalive") {
                comparison.arm = hostile.to_owned();
            }
        }
        for reason in &mut load.reasons {
            reason.reason.seen = hostile.to_owned();
            reason.arms = vec![hostile.to_owned()];
        }
    }
    let [text, md, page] = all(&run);
    assert_eq!(page.matches("<script").count(), 1, "ours alone");
    assert!(!text.contains('\x1b'));
    let before_study = md.split("`````yaml").next().unwrap();
    assert!(!before_study.contains("](y)") || before_study.contains("\\](y)"));
    assert!(!before_study.contains("<script>") || before_study.contains("\\<script\\>"));
    assert!(
        md.contains("\n`````yaml\n"),
        "the fence outlasts the text's own"
    );
}

#[test]
fn a_study_without_an_aa_arm_says_that_it_has_none() {
    let mut run = fixture::run();
    for load in &mut run.findings.loads {
        load.arms[1].role = ArmRole::Change;
    }
    for output in all(&run) {
        assert!(output.contains("no A/A arm"), "{output}");
    }
}

#[test]
fn an_aa_arm_that_differs_is_a_warning() {
    let mut run = fixture::run();
    let load = &mut run.findings.loads[0];
    let aa = load.arms[1].arm.clone();
    for found in &mut load.comparisons {
        if found.arm == aa && found.metric == Metric::Rate {
            *found = fixture::comparison(Metric::Rate, &aa, 1.07, 0.01);
        }
    }
    for output in all(&run) {
        let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            output.contains("do not believe other effects of that size"),
            "{output}"
        );
        assert!(
            output.contains("differs"),
            "neither better nor worse: {output}"
        );
    }
}

#[test]
fn few_blocks_show_the_confidence_that_they_have() {
    let mut run = fixture::run();
    for found in &mut run.findings.loads[0].comparisons {
        found.confidence = 0.875;
    }
    for output in all(&run) {
        assert!(output.contains("at 87.5 %"), "{output}");
    }
}

#[test]
fn a_load_that_is_not_to_be_used_says_why_before_any_figure() {
    let mut run = fixture::run();
    let open = &mut run.findings.loads[1];
    open.validity = Validity::Invalid;
    open.reasons[0].arms = open.arms.iter().map(|arm| arm.arm.clone()).collect();
    let [text, md, page] = all(&run);
    let said = "open is INVALID and says nothing: the hypervisor kept";
    for output in [&text, &md, &page] {
        let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.contains(said), "beside the answer: {output}");
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
            found.because = "only 748 requests in a replicate".to_owned();
        }
    }
    for output in all(&run) {
        let output = output.to_lowercase();
        assert!(output.contains("nothing could be compared"), "{output}");
        let times = output.matches("only 748 requests").count();
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
fn an_interval_that_nobody_should_believe_is_not_shown() {
    let mut run = fixture::run();
    for found in &mut run.findings.loads[0].comparisons {
        found.confidence = 0.5;
        found.verdict = Verdict::Inconclusive;
    }
    for output in all(&run) {
        assert!(!output.contains("50 %)") && !output.contains("2.58–2.65"));
    }
}
