use weir_limits::{Answer, Certainty, Finding, Role};
use weir_model::fixture::arm;
use weir_model::quantity::CpuSet;
use weir_model::record::{HostFacts, HostRecord, LinkEnd, RunHeader, Surroundings};
use weir_model::study::{Arm, ArmRole, Published, Settings};
use weir_stats::scaling::{Form, Parameter, Refusal};

use super::*;
use crate::analyze;
use crate::findings::{ApartBy, CeilingCause, LevelApart, ScalingAnswer};
use crate::fixture::{build_header, build_trials, limiter, normal, run};

const WORKERS: [&str; 5] = ["1", "2", "4", "8", "16"];

fn arms(levels: &[&str]) -> Vec<Arm> {
    levels
        .iter()
        .enumerate()
        .map(|(index, level)| {
            let role = if index == 0 { ArmRole::Baseline } else { ArmRole::Change };
            let settings = [("worker_processes", *level), ("gzip", "off")];
            let changes = if index == 0 { &[][..] } else { &settings[..1] };
            Arm {
                changes: changes
                    .iter()
                    .map(|(id, level)| ((*id).to_owned(), (*level).to_owned()))
                    .collect::<Settings>(),
                ..arm(&format!("worker_processes={level}"), role, &settings)
            }
        })
        .collect()
}

fn header_of(levels: &[&str]) -> RunHeader {
    let mut header = build_header(arms(levels));
    header.study.loads.truncate(1);
    header
}

/// Measures a study of these numbers of workers, whose machine drifts by a tenth.
fn measured(levels: &[&str], rate: impl Fn(f64) -> f64) -> ScalingFindings {
    let header = header_of(levels);
    let x: Vec<f64> = levels.iter().map(|level| level.parse().expect("a number")).collect();
    let trials = build_trials(&header, "closed", 24, |moment| {
        let drift = 1.0 + 0.1 * f64::from(moment.block) / 24.0;
        rate(x[moment.arm]) * drift * (1.0 + 0.01 * normal(moment.rng))
    });
    let (_folder, run) = run(&header, trials);
    let mut growths = analyze(&run).scaling;
    assert_eq!(growths.len(), 1);
    growths.remove(0)
}

#[test]
fn a_drift_that_all_arms_share_is_no_error_of_the_levels() {
    let growth = measured(&WORKERS, |x| 10_000.0 * x.min(6.0));
    assert_eq!(growth.measured.answer, ScalingAnswer::Named(Form::SharedCap));
    let knee = growth.measured.best().and_then(|best| best.parameter(Parameter::Knee));
    let (low, high) = knee.and_then(|knee| knee.low.zip(knee.high)).expect("an interval");
    assert!(low < 6.0 && 6.0 < high && high / low < 1.06, "{low} {high}");
    assert_eq!(growth.factor, ScalingFactor::Parameter { id: "worker_processes".to_owned() });
    let residuals =
        growth.measured.levels.iter().filter_map(crate::findings::ScalingLevel::residual);
    assert!(residuals.clone().count() == 5 && residuals.map(f64::abs).all(|one| one < 0.02));
    let twice = growth.predict(32.0).expect("twice the highest").response;
    assert!(twice.low < 63_000.0 && 62_000.0 < twice.high, "{twice:?}");
    assert_eq!(growth.predict(33.0), Err(Refusal::TooFar { farthest: 32.0 }));
}

#[test]
fn what_does_not_grow_or_has_two_levels_is_refused() {
    let flat = measured(&WORKERS, |_| 20_000.0).measured.answer;
    assert!(matches!(flat, ScalingAnswer::Refused(Refusal::Flat { .. })), "{flat:?}");
    let falling = measured(&WORKERS, |x| 40_000.0 / (1.0 + x)).measured.answer;
    assert!(matches!(falling, ScalingAnswer::Refused(Refusal::Falls { .. })), "{falling:?}");
    let two = header_of(&WORKERS[..2]);
    let few = NoFactor::TooFewLevels(vec![("worker_processes".to_owned(), 2)]);
    assert_eq!(has_factor(&two.study), Err(few));
    assert_eq!(has_factor(&header_of(&WORKERS[..1]).study), Err(NoFactor::NothingVaried));
    let (_folder, run) = run(&two, build_trials(&two, "closed", 12, |_| 9_000.0));
    assert!(analyze(&run).scaling.is_empty());
}

#[test]
fn arms_of_a_factorial_are_a_series_for_each_level_of_the_other_factor() {
    let mut study = header_of(&WORKERS[..3]).study;
    let mut compressed = arms(&WORKERS[..3]);
    for arm in &mut compressed {
        arm.name.push_str(",gzip=on");
        arm.role = ArmRole::Change;
        arm.settings.insert("gzip".to_owned(), "on".to_owned());
        arm.changes.insert("gzip".to_owned(), "on".to_owned());
    }
    study.arms.extend(compressed);
    let [off, on] = &series(&study, None)[..] else {
        panic!("{:?}", series(&study, None));
    };
    assert_eq!((off.stratum["gzip"].as_str(), on.stratum["gzip"].as_str()), ("off", "on"));
    assert_eq!(off.levels, [(0, 1.0), (1, 2.0), (2, 4.0)]);
    assert_eq!(on.levels, [(3, 1.0), (4, 2.0), (5, 4.0)]);
}

#[test]
fn published_figures_are_fitted_beside_ours_with_levels_of_larger_machines() {
    let mut header = header_of(&WORKERS[..2]);
    let figures = [(1, 36_647.0), (2, 74_192.0), (4, 148_936.0), (8, 300_625.0), (16, 342_651.0)];
    header.study.published = Some(Published {
        figures: figures
            .into_iter()
            .map(|(cpus, figure)| (format!("worker_processes={cpus}"), figure))
            .collect(),
        ..serde_json::from_str(r#"{"source": "", "metric": "", "figures": {}, "by_load": {}}"#)
            .expect("published figures")
    });
    let (_folder, run) = run(&header, build_trials(&header, "closed", 12, |_| 9_000.0));
    let growth = analyze(&run).scaling.remove(0);
    let few = ScalingAnswer::Refused(Refusal::TooFewLevels { levels: 2 });
    assert_eq!(growth.measured.answer, few);
    let published = growth.published.expect("a curve");
    assert_eq!(published.levels.len(), 5);
    assert!(!matches!(published.answer, ScalingAnswer::Refused(_)), "{:?}", published.answer);
}

/// Returns the findings of an arm with this limiter.
fn limited(arm: &str, name: &str, role: Role) -> LimiterFindings {
    let mut findings = limiter(arm);
    findings.load = "closed".to_owned();
    findings.judgement.answer = Answer::Named;
    findings.judgement.findings = vec![Finding {
        limiter: name.to_owned(),
        role,
        says: String::new(),
        advice: String::new(),
        certainty: Certainty::default(),
        unjudged: Vec::new(),
        score: 0.0,
        evidence: Vec::new(),
        turn: Vec::new(),
        ways: Vec::new(),
        after: Vec::new(),
        behind: None,
        source: String::new(),
        doctor: Vec::new(),
    }];
    findings
}

#[test]
fn a_ceiling_is_shared_if_all_arms_beyond_the_knee_have_one_limiter_outside_of_the_proxy() {
    let growth = measured(&WORKERS, |x| 10_000.0 * x.min(6.0));
    let [eight, sixteen] = ["worker_processes=8", "worker_processes=16"];
    use Role::{Origin, Proxy};
    for (at_eight, at_sixteen, expected) in [
        (("origin", Origin), ("origin", Origin), "shared"),
        (("network", Proxy), ("network", Proxy), "shared"),
        (("cpu", Proxy), ("cpu", Proxy), "proxy"),
        (("cpu", Proxy), ("origin", Origin), "different"),
    ] {
        let limiters =
            [limited(eight, at_eight.0, at_eight.1), limited(sixteen, at_sixteen.0, at_sixteen.1)];
        let ceiling = ceiling::find(&growth, &limiters).expect("a ceiling");
        assert_eq!(ceiling.names, [eight, sixteen]);
        let cause = match &ceiling.cause {
            CeilingCause::Shared(evidence) if evidence.limiter == at_sixteen.0 => "shared",
            CeilingCause::Proxy(evidence) if evidence.limiter == at_sixteen.0 => "proxy",
            CeilingCause::Different(named) if named.len() == 2 => "different",
            cause => panic!("{cause:?}"),
        };
        assert_eq!(cause, expected);
        let half_judged = ceiling::find(&growth, &limiters[..1]).map(|ceiling| ceiling.cause);
        assert_eq!(half_judged, Some(CeilingCause::Unknown));
    }
    let linear = measured(&WORKERS, |x| 10_000.0 * x);
    assert!(ceiling::find(&linear, &[]).is_none(), "{:?}", linear.measured.answer);
}

/// Measures a study of 1, 2, 4 and 8 CPUs, with as many workers, on a host of four cores with two threads each.
fn measured_by_cpus(facts: HostFacts) -> Vec<ScalingFindings> {
    let counts = [1_u32, 2, 4, 8];
    let arms = counts.map(|count| {
        let role = if count == 1 { ArmRole::Baseline } else { ArmRole::Change };
        let level = count.to_string();
        let settings = [("cpus", level.as_str()), ("worker_processes", level.as_str())];
        Arm {
            changes: Settings::from([("cpus".to_owned(), level.clone())]),
            cpus: CpuSet::new((0..count).collect()),
            ..arm(&format!("cpus={count}"), role, &settings)
        }
    });
    let mut header = build_header(arms.to_vec());
    header.study.loads.truncate(1);
    let (host, roles) = ("here".to_owned(), vec![LinkEnd::Proxy]);
    let host = HostRecord { host, roles, clock: None, facts };
    header.surroundings = Some(Surroundings { hosts: vec![host], ..Surroundings::default() });
    let trials = build_trials(&header, "closed", 24, |moment| {
        f64::from(counts[moment.arm]) * 1_000.0 * (1.0 + 0.01 * normal(moment.rng))
    });
    let (_folder, run) = run(&header, trials);
    analyze(&run).scaling
}

#[test]
fn second_threads_of_cores_are_no_more_of_the_same() {
    let siblings = ["0,4", "1,5", "2,6", "3,7"].map(|core| core.parse().unwrap()).to_vec();
    let growths = measured_by_cpus(HostFacts { siblings, ..HostFacts::default() });
    let growth = growths.first().expect("a growth");
    assert_eq!(growth.factor, ScalingFactor::Parameter { id: "cpus".to_owned() });
    let levels: Vec<f64> = growth.measured.levels.iter().map(|level| level.x).collect();
    assert_eq!(levels, [1.0, 2.0, 4.0]);
    assert_eq!(growth.apart, [LevelApart { arm: "cpus=8".to_owned(), by: ApartBy::Threads }]);

    let nodes = [(0, "0-3"), (1, "4-7")].map(|(node, cpus)| (node, cpus.parse().unwrap()));
    let growths = measured_by_cpus(HostFacts { nodes: nodes.into(), ..HostFacts::default() });
    assert_eq!(growths[0].apart, [LevelApart { arm: "cpus=8".to_owned(), by: ApartBy::Nodes }]);
    let growths = measured_by_cpus(HostFacts::default());
    assert_eq!((growths[0].measured.levels.len(), growths[0].apart.len()), (4, 0));
}
