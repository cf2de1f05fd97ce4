//! Tests of studies that compare every pair, and of studies of different proxies.

use std::collections::BTreeMap;

use weir_model::record::{CountersRecord, Phase, Record, RunHeader};
use weir_model::study::{Arm, ArmRole, Compare, ExternalSpec, Metric, ProxyKind, ProxySpec};

use super::{AnalyzedRun, comparison};
use weir_analysis::findings::{Comparison, Findings, Verdict};
use weir_analysis::fixture::{Moment, arm, build_header, build_trials, normal, run, three_arms};
use weir_analysis::rankings;
use weir_sentences::describe_ranking;

pub(super) const KINDS: [ProxyKind; 5] =
    [ProxyKind::Nginx, ProxyKind::Haproxy, ProxyKind::Envoy, ProxyKind::Caddy, ProxyKind::Httpd];

/// An arm with a proxy of its own, and with that proxy's name.
pub(super) fn arm_of(kind: ProxyKind, like: &ProxySpec) -> Arm {
    let proxy = ProxySpec { kind, ..like.clone() };
    Arm { proxy: Some(Box::new(proxy)), ..arm(kind.name(), ArmRole::Change, 0) }
}

/// A study of five proxies and the baseline once more, compared pair by pair.
fn five() -> RunHeader {
    let mut header = build_header(vec![
        arm("nginx", ArmRole::Baseline, 0),
        arm("nginx-again", ArmRole::SameAsBaseline, 0),
    ]);
    let like = header.study.proxy.clone();
    header.study.arms.extend(KINDS[1..].iter().map(|kind| arm_of(*kind, &like)));
    header.study.compare = Compare::Pairs;
    header
}

/// Rates by arm, with noise of 5 %.
fn world(rates: &[f64]) -> impl FnMut(Moment<'_>) -> f64 {
    move |moment| rates[moment.arm] * (0.05 * normal(moment.rng)).exp()
}

fn pairs_of(findings: &Findings, metric: Metric) -> Vec<&Comparison> {
    findings.loads[0].pairs.iter().filter(|pair| pair.metric == metric).collect()
}

#[test]
fn a_run_whose_truth_is_known_ranks_rightly() {
    let header = five();
    // nginx and HAProxy alike, Envoy at 0.61 of them, Caddy and httpd alike at 0.3.
    let rates = [20e3, 20e3, 20e3, 12.2e3, 6e3, 6e3];
    let (_folder, run) = run(&header, build_trials(&header, "closed", 60, world(&rates)));
    let findings = AnalyzedRun::of(&run);
    let load = &findings.loads[0];
    assert_eq!(pairs_of(&findings, Metric::Rate).len(), 10);
    assert_eq!(load.pairs.len(), 20, "the rate and the CPU time");
    assert!(
        load.pairs.iter().all(|pair| pair.arm != "nginx-again" && pair.against != "nginx-again")
    );

    let ranking = &load.rankings[0];
    let mut groups = ranking.groups.clone();
    groups.iter_mut().for_each(|group| group.sort());
    let expected: [&[&str]; 3] = [&["haproxy", "nginx"], &["envoy"], &["caddy", "httpd"]];
    assert_eq!(groups, expected);
    assert_eq!(ranking.overlaps, []);
    assert_eq!(ranking.unranked, [""; 0]);
    let answer = &findings.answer();
    // Which nobody has checked.
    assert!(!answer.contains("equal terms"), "{answer}");
    for words in [
        "carry most and ",
        "; Envoy carries 0.6",
        "times as much as ",
        " (95 % interval 0.",
        "Apache httpd",
        "Caddy",
    ] {
        assert!(answer.contains(words), "{words}: {answer}");
    }
    assert!(!answer.contains("makes") && !answer.contains("haproxy"), "{answer}");
}

/// Caddy is far behind, but was not compared with nginx.
#[test]
fn an_arm_that_was_not_compared_with_the_best_one_leaves_that_open() {
    let header = five();
    let rates = [26e3, 26e3, 20e3, 12e3, 6e3, 6.5e3];
    let (_folder, run) = run(&header, build_trials(&header, "closed", 60, world(&rates)));
    let mut load = AnalyzedRun::of(&run).findings.loads.remove(0);
    let clear = describe_ranking(&header.study, &load, Metric::Rate).unwrap();
    assert!(clear.starts_with("nginx carries most; "), "{clear}");
    let mut pairs = load.pairs.iter_mut();
    let pair = pairs.find(|pair| (&*pair.arm, &*pair.against) == ("caddy", "nginx"));
    pair.unwrap().verdict = Verdict::Invalid;
    load.rankings = rankings(&header.study, &[Metric::Rate], &load.pairs);
    let open = describe_ranking(&header.study, &load, Metric::Rate).unwrap();
    assert!(open.starts_with("nginx carries most as far as can be told; "), "{open}");
}

#[test]
fn a_verdict_is_the_same_wherever_it_stands() {
    let header = five();
    let rates = [20e3, 20e3, 20.4e3, 12e3, 6e3, 6e3];
    let (_folder, run) = run(&header, build_trials(&header, "closed", 40, world(&rates)));
    let findings = AnalyzedRun::of(&run);
    let load = &findings.loads[0];
    for comparison in load.comparisons.iter().filter(|c| c.arm != "nginx-again") {
        let pair = load.pairs.iter().find(|pair| {
            (pair.metric, &pair.arm, &pair.against)
                == (comparison.metric, &comparison.arm, &comparison.against)
        });
        assert_eq!(pair, Some(comparison));
    }
    let same = load.comparisons.iter().find(|c| c.arm == "nginx-again").unwrap();
    assert_eq!(same.p_holm, (same.p * 10.0).min(1.0));
}

#[test]
fn pairs_are_antisymmetric() {
    for seed in 1..=8 {
        let mut forth = five();
        forth.study.arms.remove(1);
        let rates: Vec<f64> =
            (0..5).map(|arm| 10e3 * f64::from(1 + (seed * (arm + 3)) % 7)).collect();
        let recorded = build_trials(&forth, "closed", 20, world(&rates));
        // The same records, the arms the other way round.
        let mut back = forth.clone();
        back.study.arms.reverse();
        let (_f, forth) = run(&forth, recorded.clone());
        let (_b, back) = run(&back, recorded);
        let (forth, back) = (AnalyzedRun::of(&forth), AnalyzedRun::of(&back));
        for pair in &forth.loads[0].pairs {
            let twin = back.loads[0].pairs.iter().find(|twin| {
                (twin.metric, &twin.arm, &twin.against) == (pair.metric, &pair.against, &pair.arm)
            });
            let (twin, mirrored) = (twin.unwrap(), pair.mirrored());
            for (a, b) in [
                (twin.ratio, mirrored.ratio),
                (twin.interval.0, mirrored.interval.0),
                (twin.interval.1, mirrored.interval.1),
                (twin.p, mirrored.p),
            ] {
                assert!((a / b - 1.0).abs() < 1e-9, "{pair:?}\n{twin:?}");
            }
            assert_eq!(twin.n, mirrored.n, "{pair:?}\n{twin:?}");
            let reasons = [twin, &mirrored].map(|found| back.reason(found));
            assert_eq!((twin.verdict, &reasons[0]), (mirrored.verdict, &reasons[1]));
            assert_eq!(mirrored.mirrored().verdict, pair.verdict);
        }
        assert_eq!(forth.loads[0].rankings[0].groups, back.loads[0].rankings[0].groups);
    }
}

#[test]
fn another_proxy_makes_nobody_carry_more() {
    let mut header = five();
    header.study.compare = Compare::Against;
    header.study.arms.push(arm("no-log", ArmRole::Change, 0));
    let rates = [20e3, 20e3, 26e3, 12e3, 20e3, 20e3, 24e3];
    let (_folder, run) = run(&header, build_trials(&header, "closed", 60, world(&rates)));
    let findings = AnalyzedRun::of(&run);
    assert!(findings.loads[0].pairs.is_empty() && findings.loads[0].rankings.is_empty());
    let answer = &findings.answer();
    for words in [
        "no-log makes nginx carry 1.2",
        "; Envoy carries 0.6",
        " times as much as nginx (95 % interval 0.",
        "; HAProxy carries 1.3",
        "Caddy",
        "Apache httpd",
    ] {
        assert!(answer.contains(words), "{words}: {answer}");
    }
    assert!(
        answer.contains("differ from nginx") || answer.contains("be told from nginx"),
        "{answer}"
    );
    assert_eq!(answer.matches("make").count(), 1, "{answer}");
}

#[test]
fn what_weir_did_not_start_has_no_cpu_time() {
    let mut header = build_header(three_arms());
    let mut proxy = header.study.proxy.clone();
    proxy.kind = ProxyKind::External;
    proxy.external = Some(ExternalSpec::at("192.0.2.7:80".parse().unwrap()));
    header.study.arms[2].proxy = Some(Box::new(proxy));
    let mut recorded = build_trials(&header, "closed", 20, world(&[20e3, 20e3, 30e3]));
    for trial in recorded.iter_mut().filter(|trial| trial.arm == "keepalive") {
        trial.slices.iter_mut().for_each(|slice| slice.proxy_cpu_ns = 0);
    }
    let (_folder, run) = run(&header, recorded);
    let findings = AnalyzedRun::of(&run);
    let load = &findings.loads[0];
    assert_eq!(load.arms[2].cpu_per_request_ns, None);
    assert!(load.arms[0].cpu_per_request_ns.is_some());
    let rate = comparison(&findings, 0, Metric::Rate, "keepalive");
    assert_eq!(rate.verdict, Verdict::Better);
    let cpu = comparison(&findings, 0, Metric::CpuPerRequest, "keepalive");
    assert_eq!(cpu.verdict, Verdict::Invalid);
    assert_eq!(
        findings.reason(cpu),
        "weir did not start the proxy of keepalive and does not see its CPU time"
    );
    assert!(load.reasons.is_empty(), "{:?}", load.reasons);
}

#[test]
fn counters_are_added_up_over_the_parts_of_a_load() {
    let header = build_header(three_arms());
    let (_folder, mut run) = run(&header, build_trials(&header, "closed", 8, world(&[1e4; 3])));
    for (load, first_block, overflow) in [("closed", 0, 3), ("closed", 4, 4), ("open", 0, 100)] {
        let counted = [("overflow", overflow), ("total", 10), ("idle", 0)];
        run.records.push(Record::Counters(CountersRecord {
            phase: Phase::Measurement,
            session: 0,
            load: load.to_owned(),
            arm: "keepalive".to_owned(),
            first_block,
            counted: counted.map(|(name, n)| (name.to_owned(), n)).into(),
        }));
    }
    let findings = AnalyzedRun::of(&run);
    let sums = [("overflow", 7), ("total", 20)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!(findings.loads[0].arms[2].counters, BTreeMap::from(sums));
    assert!(findings.loads[0].arms[0].counters.is_empty());
}

/// a and b are alike, b and c are alike, a is better than c: no arm gets a place that no pair gives it.
#[test]
fn what_is_not_told_apart_across_groups_is_named() {
    let mut header = build_header(vec![
        arm("a", ArmRole::Baseline, 0),
        arm("b", ArmRole::Change, 0),
        arm("c", ArmRole::Change, 0),
    ]);
    header.study.compare = Compare::Pairs;
    // Noise of 5 % and twelve blocks: 3 % are not shown, 6 % are.
    let rates = [11.0e3, 10.7e3, 10.35e3];
    let mut has_overlaps = false;
    for blocks in 8..24 {
        let (_folder, run) = run(&header, build_trials(&header, "closed", blocks, world(&rates)));
        let findings = AnalyzedRun::of(&run);
        let ranking = &findings.loads[0].rankings[0];
        let sentence = describe_ranking(&findings.study, &findings.loads[0], Metric::Rate).unwrap();
        let pairs = pairs_of(&findings, Metric::Rate);
        for (better, arm) in &ranking.overlaps {
            has_overlaps = true;
            let pair = pairs
                .iter()
                .find(|p| [[&p.arm, &p.against], [&p.against, &p.arm]].contains(&[arm, better]));
            let is_decided = matches!(pair.unwrap().verdict, Verdict::Better | Verdict::Worse);
            let group = ranking.groups.iter().find(|group| group.contains(arm));
            let is_of_group = group.unwrap().contains(better);
            assert!(!is_decided && !is_of_group, "{ranking:?}");
            let words = format!("{arm} from {better}");
            let first = format!("{arm} could not be told from {better} either");
            let is_named = sentence.contains(&words) || sentence.contains(&first);
            assert!(is_named, "{sentence}");
            assert!(sentence.contains("as far as can be told"), "{sentence}");
        }
    }
    assert!(has_overlaps, "no run was undecided across groups");
}
