//! Verdicts on recommendations, by findings.

use serde_json::json;
use weir_advice::{
    AdviceVerdict, ArmResult, Because, Book, Installed, Recommendation, Standing, Untried, judge,
};
use weir_analysis::findings::{Comparison, Verdict};
use weir_model::record::Inert;
use weir_model::study::{Metric, ProxyKind};

fn find(id: &str) -> Recommendation {
    Book::builtin().recommendations.iter().find(|advice| advice.id == id).expect("its name").clone()
}

fn compare(metric: Metric, verdict: Verdict, ratio: f64) -> ArmResult {
    let interval = (ratio * 0.98, ratio * 1.02);
    let comparison: Comparison = serde_json::from_value(json!({
        "metric": metric, "arm": "a", "against": "stock", "n": 12, "merged": 1, "autocorrelation": 0.0,
        "ratio": ratio, "interval": interval, "pooled": ratio, "confidence": 0.95, "p": 0.01, "p_holm": 0.01,
        "minimum_detectable": 0.02, "verdict": verdict,
        "because": {"basis": "within_band", "caveats": []},
    }))
    .expect("a comparison");
    ArmResult { comparison: Some(comparison), ..ArmResult::default() }
}

fn rate(verdict: Verdict, ratio: f64) -> ArmResult {
    compare(Metric::Rate, verdict, ratio)
}

fn p99(verdict: Verdict, ratio: f64) -> ArmResult {
    compare(Metric::ResponseP99, verdict, ratio)
}

fn inert() -> ArmResult {
    let level = Inert {
        id: "backlog".to_owned(),
        requested: "65536".to_owned(),
        effective: "listen backlog 511".to_owned(),
        why: "the listener's own backlog is 511".to_owned(),
    };
    ArmResult { inert: vec![level], ..compare(Metric::Rate, Verdict::Equivalent, 1.0) }
}

#[test]
fn what_was_measured_is_held_against_the_claim() {
    use AdviceVerdict::{Confirmed, Harmful, Inert, NoEffect, Obsolete, Smaller, Undecided};
    use Verdict::{Better, Equivalent, Inconclusive, Invalid, Worse};
    let new = Installed {
        programs: [(ProxyKind::Nginx, "nginx/1.22.1".to_owned())].into(),
        kernel: "6.18.4".to_owned(),
        ..Installed::default()
    };
    let old = Installed {
        programs: [(ProxyKind::Nginx, "nginx/1.18.0".to_owned())].into(),
        kernel: "4.19".to_owned(),
        ..Installed::default()
    };
    for (id, installed, result, expected) in [
        // A claim without a figure is confirmed if it is better, however little.
        ("b-access-log", &new, rate(Better, 1.05), Confirmed),
        ("b-access-log", &new, rate(Equivalent, 1.0), NoEffect),
        ("b-access-log", &new, rate(Worse, 0.9), Harmful),
        ("b-access-log", &new, rate(Inconclusive, 1.02), Undecided),
        ("b-access-log", &new, rate(Invalid, 1.0), Undecided),
        ("b-access-log", &new, ArmResult::default(), Undecided),
        // 1.094 was published.
        ("c-open-file-cache", &new, rate(Better, 1.04), Smaller),
        ("c-open-file-cache", &new, rate(Better, 1.08), Confirmed),
        ("c-open-file-cache", &new, rate(Better, 1.30), Confirmed),
        // A quarter to a fifth of the p99 was published.
        ("a-somaxconn", &old, p99(Better, 0.5), Smaller),
        ("a-somaxconn", &old, p99(Better, 0.25), Confirmed),
        ("a-somaxconn", &old, inert(), Inert),
        // Later versions took the reason away; a gain or a loss is one nevertheless.
        ("a-somaxconn", &new, inert(), Obsolete),
        ("a-keepalive-requests", &new, rate(Equivalent, 1.0), Obsolete),
        ("a-keepalive-requests", &old, rate(Equivalent, 1.0), NoEffect),
        ("a-keepalive-requests", &new, rate(Better, 1.1), Confirmed),
        ("a-keepalive-requests", &new, rate(Worse, 0.9), Harmful),
        ("a-keepalive-requests", &new, rate(Inconclusive, 1.0), Undecided),
    ] {
        let finding = judge(&find(id), &Standing::Applies, Some(&result), installed);
        assert_eq!(finding.verdict, expected, "{id} {result:?}");
        let is_invalid = result.comparison.as_ref().is_none_or(|found| found.verdict == Invalid);
        assert_eq!(finding.ratio.is_none(), is_invalid);
    }
}

#[test]
fn what_was_not_measured_says_why() {
    let new = Installed {
        programs: [(ProxyKind::Nginx, "nginx/1.22.1".to_owned())].into(),
        ..Installed::default()
    };
    let untried = Standing::Untried(Untried::NotReached);
    let finding = judge(&find("b-access-log"), &untried, None, &new);
    assert_eq!(finding.verdict, AdviceVerdict::NotTried);
    assert_eq!(finding.because, Because::Untried(Untried::NotReached));
    let finding = judge(&find("b-sendfile"), &Standing::Stock, None, &new);
    assert_eq!((finding.verdict, finding.because), (AdviceVerdict::Inert, Because::Stock));
    let finding = judge(&find("a-upstream-keepalive-requests"), &Standing::Stock, None, &new);
    assert_eq!(finding.verdict, AdviceVerdict::Obsolete);
}
