//! Tests of published gains beside measured ones, and of arms that are not compared with the baseline.

use weir_model::fixture::settings;
use weir_model::study::{Compare, GainOf, Metric, ProxyKind, ProxySpec, PublishedGain};
use weir_report::{html, markdown, terminal};

use crate::fixture::{self, Fixture};
use crate::markup::{self, keep};
use crate::proxies::{Plan, run_of};

/// Returns the figures of study E beside a factorial of workers and transports.
fn gains(compare: Compare) -> Fixture {
    let plans: [Plan; 4] = [
        ("baseline", 1.0, 1.0),
        ("worker_processes=2", 1.6, 1.0),
        ("transport=sockmap", 1.4, 0.8),
        ("worker_processes=2+transport=sockmap", 2.4, 0.8),
    ]
    .map(|(name, rate, cpu)| (name, ProxyKind::Nginx, "nginx/1.22.1", rate, cpu));
    let mut run = run_of(&plans);
    let levels: [&[(&str, &str)]; 4] = [
        &[],
        &[("worker_processes", "2")],
        &[("transport", "sockmap")],
        &[("worker_processes", "2"), ("transport", "sockmap")],
    ];
    for (arm, own) in run.header.study.arms.iter_mut().zip(levels) {
        arm.proxy = None;
        arm.settings = settings(own);
        arm.changes = settings(own);
    }
    run.header.study.compare = compare;
    if compare == Compare::Against {
        run.findings.loads[0].pairs.clear();
        run.findings.loads[0].rankings.clear();
    }
    let mut published = fixture::run().header.study.published.unwrap();
    published.source = "a vendor's white paper, two hosts with 40 cores".to_owned();
    published.figures.clear();
    published.gains = vec![
        gain(Metric::Rate, Some(1.78), Some(2.04)),
        gain(Metric::CpuPerRequest, Some(0.3), None),
        gain(Metric::ResponseP99, Some(-0.3), None),
        PublishedGain {
            of: GainOf::Arms(vec!["worker_processes=2".to_owned()]),
            ..gain(Metric::CpuPerRequest, Some(-0.2), None)
        },
    ];
    run.header.study.published = Some(published);
    run
}

fn gain(metric: Metric, mean: Option<f64>, peak: Option<f64>) -> PublishedGain {
    PublishedGain {
        load: None,
        of: GainOf::Level { id: "transport".to_owned(), level: "sockmap".to_owned() },
        metric,
        mean,
        peak,
    }
}

#[test]
fn published_gains_stand_beside_ours() {
    let text = markdown(&gains(Compare::Pairs).input());
    let begin = text.find("## Published").unwrap();
    let end = begin + text[begin..].find("\n## The arms").unwrap();
    insta::assert_snapshot!(&text[begin..end]);
    let page = html(&gains(Compare::Pairs).input());
    keep("gains.html", &page);
    markup::check(&page);
    let lines = terminal(&gains(Compare::Pairs).input(), false, 80);
    let begin = lines.find("Published beside").unwrap();
    insta::assert_snapshot!("gains_terminal", &lines[begin..]);
}

/// Returns the row of the level on the completed rate. Empty if there is none.
fn find_row(text: &str) -> &str {
    text.lines()
        .find(|line| line.starts_with("| transport=sockmap | completed rate"))
        .unwrap_or_default()
}

/// An arm with another executable of the same proxy differs in more than the level.
#[test]
fn a_gain_of_a_level_is_not_against_another_executable() {
    let mut run = gains(Compare::Pairs);
    for executable in [None, Some("/opt/nginx".into())] {
        let study = &mut run.header.study;
        let proxy = ProxySpec { executable, ..study.proxy.clone() };
        study.arms[2].proxy = Some(Box::new(proxy));
        let text = markdown(&run.input());
        let is_there = find_row(&text).contains("transport=sockmap against baseline");
        let study = &run.header.study;
        let is_same = study.proxy_of(&study.arms[2]).executable.is_none();
        assert_eq!(is_there, is_same, "{text}");
    }
}

#[test]
fn arms_of_strata_are_compared_with_what_differs_from_them_in_nothing_else() {
    let mut run = gains(Compare::Against);
    let alone = "arms are compared with the one that differs from them in nothing else";
    for (against, note) in [(2, "each step is compared with the one before it"), (1, alone)] {
        run.header.study.arms[3].against = against;
        let name = run.header.study.arms[against].name.clone();
        for found in &mut run.findings.loads[0].comparisons {
            if found.arm == "worker_processes=2+transport=sockmap" {
                found.against.clone_from(&name);
            }
        }
        let text = terminal(&run.input(), false, 200).replace('\n', " ");
        let note = format!("{note}, worker_processes=2+transport=sockmap with {name} ");
        assert!(text.contains(&note), "{note}:\n{text}");
    }
}

/// Without pairs, no arm differs from the one with two workers in the transport alone.
#[test]
fn a_gain_of_a_level_is_against_the_arm_that_differs_in_it_alone() {
    let text = markdown(&gains(Compare::Against).input());
    let row = find_row(&text);
    let gain = "| +40 % (+40 %) | transport=sockmap against baseline: +40 %";
    markup::has_all(row, &[gain]);
    assert!(row.ends_with("| confirmed |"), "{row}");
}
