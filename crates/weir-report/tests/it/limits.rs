//! Limits, figures published for one load, and loads that say how their connections are used: in
//! every output.

use std::time::Duration;

use weir_analysis::findings::{LimitFindings, LimitVerdict};
use weir_model::flow::FlowSpec;
use weir_model::load::Lifetime;
use weir_model::study::Metric;
use weir_model::tls::{Resumption, TlsSpec, TlsVersion};
use weir_report::{html, markdown, terminal};

use crate::fixture::{self, Fixture};

/// All outputs as text.
fn outputs(run: &Fixture) -> [String; 3] {
    let input = run.input();
    [terminal(&input, false, 120), markdown(&input), html(&input)]
}

fn limit(arm: &str, verdict: LimitVerdict, value_ns: f64) -> LimitFindings {
    LimitFindings {
        arm: arm.to_owned(),
        metric: Metric::ResponseP99,
        limit_ns: 30_000_000,
        value_ns,
        interval_ns: (value_ns * 0.9, value_ns * 1.1),
        confidence: 0.95,
        n: 12,
        verdict,
        because: "because".to_owned(),
    }
}

#[test]
fn a_limit_is_shown_with_estimate_interval_and_verdict() {
    let mut run = fixture::run();
    run.header.study.objective.within = Some(Duration::from_millis(30));
    run.findings.loads[1].limits = vec![
        limit("stock", LimitVerdict::Holds, 2e6),
        limit("gzip", LimitVerdict::DoesNotHold, 4e7),
        limit("access_log off", LimitVerdict::NotShown, 3e7),
        limit("proxy_buffering off", LimitVerdict::Invalid, f64::NAN),
    ];
    for text in outputs(&run) {
        for words in [
            "p99 within 30 ms",
            "within 30 ms; equivalence",
            "▲ holds",
            "▼ does not hold",
            "○ not shown to hold",
            "× invalid",
            "1.80 ms to 2.20 ms",
        ] {
            let found = text.contains(words) || text.contains(&words.replacen('p', "P", 1));
            assert!(found, "{words} is not in\n{text}");
        }
    }
}

#[test]
fn an_arm_that_is_alone_is_compared_with_nothing() {
    let mut run = fixture::run();
    run.header.study.arms.truncate(1);
    for load in &mut run.findings.loads {
        load.arms.truncate(1);
        load.comparisons.clear();
    }
    for text in outputs(&run) {
        assert!(!text.contains("othing could be compared"), "{text}");
        assert!(!text.contains("A/A: "), "{text}");
    }
}

#[test]
fn figures_of_each_load_stand_beside_what_was_measured_under_it() {
    let mut run = fixture::run();
    let published = run.header.study.published.as_mut();
    let published = published.expect("the fixture has figures");
    let figures = std::mem::take(&mut published.figures);
    let larger = [("workers=16", 342_651.0), ("workers=4", 148_936.0)];
    let mut own = figures.clone();
    own.extend(larger.map(|(arm, figure)| (arm.to_owned(), figure)));
    published.by_load = [("closed".to_owned(), own), ("open".to_owned(), figures)].into();
    for text in outputs(&run) {
        assert_eq!(text.matches("under load closed (VALID)").count(), 1);
        assert_eq!(text.matches("under load open (SUSPECT)").count(), 1);
        assert_eq!(text.matches("342,651").count(), 1, "{text}");
        assert!(text.find("workers=4") < text.find("workers=16"));
        assert_eq!(text.matches("not measured").count(), 2, "{text}");
    }
}

#[test]
fn how_connections_are_used_is_said() {
    let mut run = fixture::run();
    let load = &mut run.header.study.loads[0];
    load.lifetime = Lifetime::Request;
    load.beside.push(FlowSpec::held(10_000));
    load.tls = Some(TlsSpec {
        versions: vec![TlsVersion::V1_2],
        ciphers: vec!["ECDHE-RSA-AES256-GCM-SHA384".to_owned()],
        resumption: Resumption::Ratio(0.8),
        ..TlsSpec::default()
    });
    for text in outputs(&run) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = "50 connections to each arm, 10,000 held idle, a connection for each request, \
                     TLS 1.2 offered (ECDHE-RSA-AES256-GCM-SHA384), 80 % resumed, GET /";
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn throughput_is_in_gigabits() {
    let mut run = fixture::run();
    let load = &mut run.findings.loads[0];
    load.metrics[0] = Metric::ReceivedBytes;
    for comparison in &mut load.comparisons {
        if comparison.metric == Metric::Rate {
            comparison.metric = Metric::ReceivedBytes;
        }
    }
    load.arms[0].received_per_second = Some(1.1e9);
    for text in outputs(&run) {
        assert!(text.contains("Gbit/s") && text.contains("8.80"), "{text}");
    }
}
