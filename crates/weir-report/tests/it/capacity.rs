//! Tests of the capacities of arms, in all outputs.

use weir_analysis::capacity::{
    BracketPoint, Capacity, CapacityFindings, Counted, CurvePoint, Growth, RanOut, Ratio,
    RatioReason, UNIT,
};
use weir_analysis::findings::{CountedReason, Findings, Verdict};
use weir_model::limit::Limit;
use weir_model::record::{
    CapacityAnswer, CapacityEnd, CeilingOf, CeilingRecord, CrowdedCpus, Observation,
    ObservedRecord, SearchStage, Validity, ValidityReason,
};
use weir_model::study::ControllerSpec;
use weir_report::{html, markdown, terminal};
use weir_sentences::capacity::{carries, details};

use crate::fixture::{self, Fixture};
use crate::markup;

/// Returns the results of an M/M/1 server with `server` requests/s of capacity at a rate.
fn point(server: f64, rate: f64, stage: SearchStage, seconds: f64) -> CurvePoint {
    let spare = server - rate;
    let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|share: f64| {
        if spare > 0.0 {
            Some((-(1.0 - share).ln() / spare * 1e9) as u64)
        } else {
            (share < 0.95).then_some((share * (5e8 - spare * 1e6)) as u64)
        }
    });
    CurvePoint {
        rate,
        p50,
        p90,
        p99,
        p999,
        limit: 0,
        bad: (-spare.max(0.0) * 0.03).exp(),
        holds: spare >= 4.605 / 0.03,
        trials: 1,
        seconds,
        requests: (rate * seconds) as u64,
        stage: Some(stage),
    }
}

/// Returns the steps of a search that ends at `edge`.
fn bracket(edge: f64, (low, high): (f64, f64)) -> Vec<BracketPoint> {
    [
        (SearchStage::Closed, 2.0, None),
        (SearchStage::Ramp, 18.0, Some((0.8 * edge, 1.1 * edge))),
        (SearchStage::Dwell, 43.0, Some((0.96 * edge, 1.04 * edge))),
        (SearchStage::Hold, 108.0, Some((0.96 * edge, 1.012 * edge))),
        (SearchStage::Dwell, 126.0, Some((low, high))),
        (SearchStage::Hold, 191.0, Some((low, high))),
    ]
    .map(|(stage, seconds, between)| BracketPoint { stage, seconds, between })
    .into()
}

/// Returns the findings of a search with such a server.
fn capacity(arm: &str, server: f64) -> Capacity {
    let edge = server - 4.605 / 0.03;
    let ramp = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1.06]
        .map(|share| point(server, share * server, SearchStage::Ramp, 2.0));
    let dwells = [0.96, 0.98, 0.99, 1.004, 1.01, 1.02]
        .map(|share| point(server, share * edge, SearchStage::Dwell, 5.0));
    let trials: Vec<CurvePoint> = ramp.into_iter().chain(dwells).collect();
    let mut curve = trials.clone();
    curve.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let (low, high) = (0.985 * edge, 1.01 * edge);
    let grows = [
        (Counted::Rate, 0.2 * server, edge, Some(1.05 * server)),
        (Counted::ProxyCpu, 201_300.0, 214_800.0, Some(220_100.0)),
        (Counted::ProxyCpuShare, 0.19, 0.97, Some(0.99)),
        (Counted::OriginConnects, 0.0, 0.25, None),
        (Counted::TimeWait, 900.0, 28_231.0, Some(28_231.0)),
    ]
    .map(|(what, low, edge, above)| Growth { what, low: Some(low), edge: Some(edge), above });
    Capacity {
        claimed: true,
        unit: UNIT.to_owned(),
        answer: CapacityAnswer {
            arm: arm.to_owned(),
            load: "open".to_owned(),
            low,
            high,
            confidence: 0.95,
            limits: Limit::parse_all("p99 < 30ms, errors < 0.01%").expect("limits"),
            verified: low,
            held_s: 65.0,
            broke: Some(ObservedRecord { rate: 1.012 * edge, seconds: 31.0 }),
            saturated: server,
            seconds: (61.0, 191.0),
            connections: 50,
            ..CapacityAnswer::default()
        },
        end: Some(CapacityEnd::Found),
        curve,
        holds: vec![
            point(server, 1.012 * edge, SearchStage::Hold, 65.0),
            point(server, low, SearchStage::Hold, 65.0),
        ],
        trials,
        knee: Some(0.55 * server),
        grows: grows.into(),
        ran_out: Some(RanOut::CpuTime { used: 0.97 }),
        bracket: bracket(edge, (low, high)),
    }
}

/// Turns the fixture into a study of the capacities of these arms.
fn run(arms: Vec<Capacity>, ratios: Vec<Ratio>) -> Fixture {
    let mut run = fixture::run();
    let study = &mut run.header.study;
    study.arms.retain(|arm| arms.iter().any(|own| own.answer.arm == arm.name));
    study.loads.truncate(2);
    study.published = None;
    study.capacity = Limit::parse_all("p99 < 30ms, errors < 0.01%").expect("limits");
    run.records.clear();
    let answer: Vec<String> = match &arms[..] {
        [one] => vec![carries(one), details(one, &[]).join(" ")],
        all => all.iter().map(carries).collect(),
    };
    run.answer = answer.join("\n");
    run.findings = Findings {
        complete: true,
        capacity: Some(CapacityFindings {
            arms,
            ratios,
            validity: Validity::Valid,
            reasons: vec![CountedReason {
                reason: ValidityReason {
                    validity: Validity::Suspect,
                    subject: None,
                    observation: Observation::ProxyCrowded {
                        cpus: CrowdedCpus::Proxy,
                        share: 0.21,
                    },
                },
                arms: vec!["stock".to_owned()],
                trials: 1,
                of: 40,
            }],
            left_out: Vec::new(),
        }),
        ..Findings::default()
    };
    run
}

pub(crate) fn one() -> Fixture {
    run(vec![capacity("stock", 4_600.0)], Vec::new())
}

/// Returns three arms, one of which has no capacity.
pub(crate) fn several() -> Fixture {
    let names = ["stock", "keepalive to the origin", "gzip"];
    let mut arms = vec![capacity(names[0], 4_600.0), capacity(names[1], 9_000.0)];
    let mut none = capacity(names[2], 4_000.0);
    (none.claimed, none.answer.low, none.answer.high, none.holds) = (false, 0.0, 0.0, Vec::new());
    (none.end, none.knee, none.ran_out) = (Some(CapacityEnd::Never), None, None);
    arms.push(none);
    let unclaimed = RatioReason::Unclaimed { arm: names[2].to_owned() };
    let ratios = vec![
        ratio(names[1], 1.962, Verdict::Better, RatioReason::AboveOne),
        ratio(names[2], f64::NAN, Verdict::Invalid, unclaimed),
    ];
    run(arms, ratios)
}

fn ratio(arm: &str, value: f64, verdict: Verdict, because: RatioReason) -> Ratio {
    Ratio {
        arm: arm.to_owned(),
        against: "stock".to_owned(),
        ratio: value,
        interval: (value * 0.97, value * 1.03),
        p: 1e-5,
        p_holm: 1e-5,
        family: 1,
        verdict,
        because,
    }
}

#[test]
fn the_first_screen_answers_the_question() {
    let run = one();
    insta::assert_snapshot!("capacity_terminal", terminal(&run.input(), false, 100));
    let text = markdown(&run.input());
    let answer = text.split("## Environment").next().expect("a part");
    insta::assert_snapshot!("capacity_markdown", answer);
    insta::assert_snapshot!("capacities_terminal", terminal(&several().input(), false, 100));
}

#[test]
fn ratios_of_arms_in_turn_are_said_to_be_unpaired() {
    let mut run = several();
    let too_wide = "too wide rather than too narrow";
    markup::has_all(&markdown(&run.input()), &[too_wide]);
    run.header.study.proxy.controller = Some(ControllerSpec::default());
    let shown = markdown(&run.input());
    markup::has_none(&shown, &[too_wide]);
    let costs = "The capacities here are known to ±";
    markup::has_all(&shown, &["so the ratios are unpaired", costs]);
}

#[test]
fn nothing_of_a_comparison_is_shown() {
    let (one, several) = (one(), several());
    for run in [&one, &several] {
        let input = run.input();
        for output in [html(&input), markdown(&input), terminal(&input, false, 100)] {
            let strange = [
                "A/A",
                "equivalence band",
                "no load was measured",
                "Over time",
                "NaN",
                "completed/s",
            ];
            markup::has_none(&output, &strange);
            let answer = "stock carries 4,380 to 4,491 requests/s within p99";
            markup::has_all(&output, &[answer]);
        }
        markup::check(&html(&input));
    }
}

fn chart_in<'p>(page: &'p str, title: &str) -> &'p str {
    let after = page.split(&format!("{title}</title>")).nth(1).expect("a chart");
    after.split("</svg>").next().expect("its end")
}

#[test]
fn the_chart_has_the_objective_the_interval_the_knee_and_every_trial() {
    let run = one();
    let page = html(&run.input());
    let curve = chart_in(&page, "Response times by rate");
    // 14 short trials and two long ones; four and one of them did not hold.
    let dots = |class: &str| curve.matches(&format!("class=\"{class}\"")).count();
    assert_eq!((dots("dot"), dots("dot open")), (11, 5));
    assert_eq!(curve.matches(" r=\"6\"").count(), 2);
    for (class, name) in [("level", "p99 &lt; 30ms"), ("at", "knee"), ("band strong", "capacity")] {
        assert_eq!(dots(class), 1, "{class}");
        assert!(curve.contains(&format!(">{name}</text>")), "{name}");
    }
    assert_eq!(curve.matches("class=\"ln ").count(), 4);
    let closing = chart_in(&page, "How the search closed in");
    assert_eq!(closing.matches("class=\"dot").count(), 2);
}

#[test]
fn a_limit_of_the_measurement_is_not_shown_as_the_capacity() {
    let mut run = several();
    let findings = run.findings.capacity.as_mut().expect("capacities");
    findings.arms[0].answer.ceiling =
        Some(CeilingRecord { of: CeilingOf::Generator, rate: 4_700.0 });
    for output in [markdown(&run.input()), terminal(&run.input(), false, 100)] {
        markup::has_all(&output, &["at least 4,380"]);
        markup::has_none(&output, &["4,380 to 4,491 |"]);
    }
}
