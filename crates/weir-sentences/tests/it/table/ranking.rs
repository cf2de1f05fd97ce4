//! Rankings of arms.

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_analysis::fixture::{arm, build_header, run};
use weir_analysis::{analyze, rankings};
use weir_model::study::{ArmRole, Compare, Metric, ProxyKind, Study};
use weir_sentences::describe_ranking;

use super::Row;
use super::comparison::compared;
use crate::pairs::{KINDS, arm_of};

/// Returns a study that compares so many proxies pair by pair, and its findings without any figures.
fn measure_nothing(count: usize) -> (Study, LoadFindings) {
    let mut header = build_header(vec![arm("nginx", ArmRole::Baseline, 0)]);
    let like = header.study.proxy.clone();
    header.study.arms.extend(KINDS[1..count].iter().map(|kind| arm_of(*kind, &like)));
    header.study.compare = Compare::Pairs;
    let (_folder, run) = run(&header, Vec::new());
    (header.study, analyze(&run).loads.remove(0))
}

/// Compares two arms of these ratios to the first one: better or worse if they are more than 5 % apart, else with the
/// verdict `alike`.
fn pair(metric: Metric, ratios: &[f64], (a, b): (usize, usize), alike: Verdict) -> Comparison {
    let ratio = ratios[a] / ratios[b];
    let verdict = match (ratio > 1.05, ratio < 0.95) {
        (false, false) => alike,
        (is_more, _) if is_more == metric.higher_is_better() => Verdict::Better,
        _ => Verdict::Worse,
    };
    compared(metric, [KINDS[a], KINDS[b]].map(ProxyKind::name), ratio, verdict)
}

/// Describes the ranking of arms of these ratios to the first one, after a change of their pairs.
fn rank(
    metric: Metric,
    ratios: &[f64],
    alike: Verdict,
    change: impl FnOnce(&mut LoadFindings),
) -> String {
    let (study, mut load) = measure_nothing(ratios.len());
    let places = (1..ratios.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    load.pairs = places.map(|places| pair(metric, ratios, places, alike)).collect();
    change(&mut load);
    load.rankings = rankings(&study, &[metric], &load.pairs);
    describe_ranking(&study, &load, metric).expect("a ranking")
}

fn rank_all(metric: Metric, ratios: &[f64], alike: Verdict) -> String {
    rank(metric, ratios, alike, |_| {})
}

/// Ranks arms under a load that kept nobody busy.
fn rank_idle(ratios: &[f64]) -> String {
    rank(Metric::Rate, ratios, Verdict::Equivalent, |load| {
        load.idle = Some(super::answer::notes::idle_load());
    })
}

/// Ranks arms after the pairs of one arm with others became INVALID.
fn rank_without(arm: &str, others: &[&str]) -> String {
    rank(Metric::Rate, &[1.0, 0.8, 0.6, 0.4], Verdict::Equivalent, |load| {
        for pair in load.pairs.iter_mut().filter(|pair| pair.arm == arm || pair.against == arm) {
            let counterpart = if pair.arm == arm { &*pair.against } else { &*pair.arm };
            if others.contains(&counterpart) {
                pair.verdict = Verdict::Invalid;
            }
        }
    })
}

pub(super) fn rows() -> Vec<Row> {
    use Metric::{CpuPerRequest, Rate, ReceivedBytes, ResponseP50, ResponseP99};
    use Verdict::{Equivalent, Inconclusive};
    let (one_best, two_best) = ([1.0, 0.6, 0.3], [1.0, 1.01, 0.6, 0.59]);
    let (one_least, two_least) = ([1.0, 1.6, 2.5], [1.0, 1.01, 1.6, 1.59]);
    let many = [1.0, 0.985, 0.97, 0.945, 0.944];
    let one_more = rank(Rate, &many, Inconclusive, |load| {
        let mut pairs = load.pairs.iter_mut();
        let first_and_last = pairs.find(|pair| pair.arm == "httpd" && pair.against == "nginx");
        first_and_last.expect("a pair").verdict = Inconclusive;
    });
    let all_invalid = rank(Rate, &one_best, Equivalent, |load| {
        load.pairs.iter_mut().for_each(|pair| pair.verdict = Verdict::Invalid);
    });
    vec![
        ("By rate", rank_all(Rate, &one_best, Equivalent)),
        ("By rate, in groups that are equal", rank_all(Rate, &two_best, Equivalent)),
        ("By rate, in groups that no pair told apart", rank_all(Rate, &two_best, Inconclusive)),
        ("By rate, while nobody was busy", rank_idle(&one_best)),
        ("By rate, in groups, while nobody was busy", rank_idle(&two_best)),
        ("By throughput", rank_all(ReceivedBytes, &one_best, Equivalent)),
        ("By throughput, in groups", rank_all(ReceivedBytes, &two_best, Equivalent)),
        ("By CPU time", rank_all(CpuPerRequest, &one_least, Equivalent)),
        ("By CPU time, in groups", rank_all(CpuPerRequest, &two_least, Equivalent)),
        ("By the median response time", rank_all(ResponseP50, &one_least, Equivalent)),
        ("By the median response time, in groups", rank_all(ResponseP50, &two_least, Equivalent)),
        ("By the p99 of the response time", rank_all(ResponseP99, &one_least, Equivalent)),
        (
            "By the p99 of the response time, in groups",
            rank_all(ResponseP99, &two_least, Equivalent),
        ),
        ("Arms that are all equal", rank_all(Rate, &[1.0, 1.01, 1.0], Equivalent)),
        ("Arms that no pair told apart", rank_all(Rate, &[1.0, 1.01, 1.0], Inconclusive)),
        ("One overlap of two groups", rank_all(Rate, &[1.0, 0.97, 0.94], Inconclusive)),
        ("Two overlaps of two groups", rank_all(Rate, &[1.0, 0.98, 0.96, 0.94], Inconclusive)),
        ("Four overlaps of two groups", rank_all(Rate, &many, Inconclusive)),
        ("Five overlaps of two groups", one_more),
        ("An arm that was not compared with the best one", rank_without("caddy", &["nginx"])),
        ("An arm without a valid pair", rank_without("caddy", &["nginx", "haproxy", "envoy"])),
        ("Arms without a valid pair", all_invalid),
    ]
}
