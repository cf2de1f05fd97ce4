//! Sentences of the answer that follow the verdicts.

use weir_analysis::findings::{
    IdleLoad, Ineffective, InertArm, MisreadArm,
    Verdict::{self, Equivalent},
};
use weir_model::record::{Inert, LookRecord};
use weir_model::study::Metric;
use weir_parameters::Counter;

use super::{Row, better};
use crate::table::example::Example;
use crate::table::{alone, arms};

pub(super) fn rows() -> Vec<Row> {
    [tails(), unanswered(), about_the_run(), about_settings()].concat()
}

/// Returns the answer about changes without an effect on the median, of which the first so many have a p99 of 60 ms, and
/// the others one of 0.4 ms.
fn with_tails(count: usize) -> String {
    let changes = ["a", "b", "c"].map(|name| (name, Equivalent, 1.0));
    let mut example = Example::of_changes(Metric::ResponseP50, &changes);
    for arm in &mut example.load().arms {
        arm.samples = 10_000;
        arm.response_ns = [190_000, 210_000, 400_000, 900_000, 2_000_000];
    }
    for (name, ..) in &changes[..count] {
        example.arm(name).response_ns[2] = 60_000_000;
    }
    example.answer()
}

fn tails() -> Vec<Row> {
    let mut early = Example::of_changes(Metric::ResponseP50, &[("a", Equivalent, 1.0)]);
    for (name, p90_ns) in [("stock", 210_000), ("a", 60_000_000)] {
        let arm = early.arm(name);
        (arm.samples, arm.response_ns[1]) = (10_000, p90_ns);
    }
    vec![
        ("A tail that begins at a tenth of the requests", early.answer()),
        ("A long tail behind an equal median", with_tails(1)),
        ("Two long tails", with_tails(2)),
        ("Three long tails", with_tails(3)),
    ]
}

/// Returns the answer about arms of which these shares of the requests fail.
fn failing(shares: &[(&str, f64)]) -> String {
    let changes: Vec<(&str, Verdict, f64)> =
        shares.iter().map(|(name, _)| (*name, Equivalent, 1.0)).collect();
    let mut example = Example::of_changes(Metric::Rate, &changes);
    for (name, share) in shares {
        example.arm(name).unanswered = *share;
        example.arm(name).failures = 1;
    }
    example.answer()
}

/// Returns the answer about an arm of which a third of these requests fails, and the others have no answer in time.
fn cut_off(share: f64) -> String {
    let mut example = Example::of_changes(Metric::Rate, &[("a", Equivalent, 1.0)]);
    let arm = example.arm("a");
    (arm.unanswered, arm.failures, arm.censored) = (share, 1, 2);
    example.answer()
}

fn unanswered() -> Vec<Row> {
    let shares = [("a", 0.031), ("b", 0.12), ("c", 0.5), ("d", 1.0)];
    vec![
        ("An arm with failed requests", failing(&shares[..1])),
        ("Three arms with failed requests", failing(&shares[..3])),
        ("Many arms with failed requests", failing(&shares)),
        ("An arm with failed requests and some that were cut off", cut_off(0.03)),
    ]
}

/// Returns a look after 12 blocks of at most 1,200, at which everything was decided.
fn early_look() -> LookRecord {
    LookRecord {
        session: 0,
        load: "closed".to_owned(),
        look: 1,
        planned: vec![12, 1_200],
        blocks: 12,
        next_block: 12,
        is_last: false,
        family: 1,
        confidence: 0.99,
        level: 0.01,
        at_end: (0.96, 0.04),
        decided: Vec::new(),
        open: Vec::new(),
        expected: 12,
    }
}

fn about_the_run() -> Vec<Row> {
    vec![
        (
            "An early decision",
            better().answer_with(|example| example.load().looks = vec![early_look()]),
        ),
        (
            "An arm that changed",
            better().answer_with(|example| example.load().phases = vec![arms::phase_change()]),
        ),
        (
            "An arm whose rate changed, with no other difference",
            better().answer_with(|example| example.load().phases = vec![arms::rate_change()]),
        ),
        (
            "Two changes during the run",
            better().answer_with(|example| example.load().phases = vec![arms::phase_change(); 2]),
        ),
        (
            "Three changes during the run",
            better().answer_with(|example| example.load().phases = vec![arms::phase_change(); 3]),
        ),
        (
            "Arms that were seen fresh",
            better().answer_with(|example| example.load().fresh = Some(arms::fresh())),
        ),
        (
            "Connections that limit the load",
            better().answer_with(|example| example.load().idle = Some(idle_load())),
        ),
        (
            "An arm that works while it rests",
            better().answer_with(|example| example.load().rests = vec![arms::busy_at_rest(0)]),
        ),
        (
            "A ratio that holds alone",
            better().answer_with(|example| example.findings.alone = Some(alone::holding())),
        ),
    ]
}

fn about_settings() -> Vec<Row> {
    let equivalent = Example::of_changes(Metric::Rate, &[("keepalive", Equivalent, 1.0)]);
    vec![
        (
            "A change that did not take effect",
            better().answer_with(|example| example.load().ineffective = vec![ineffective()]),
        ),
        (
            "An inert change",
            equivalent.answer_with(|example| example.findings.inert = vec![inert_arm()]),
        ),
        (
            "A change that was read as inert and differs",
            better().answer_with(|example| example.findings.misread = vec![misread_arm()]),
        ),
        (
            "The same change under two loads",
            better().answer_with(|example| {
                example.add_load("slow");
                example.findings.misread = vec![misread_arm()];
            }),
        ),
    ]
}

/// Returns the figures of a load under which nobody was busy.
pub(in crate::table) fn idle_load() -> IdleLoad {
    IdleLoad { connections: 50, response_s: (0.002, 0.002), busiest: 0.12, others: None }
}

/// Returns a change whose counter did not move.
pub(in crate::table) fn ineffective() -> Ineffective {
    Ineffective {
        arm: "keepalive".to_owned(),
        against: "stock".to_owned(),
        id: "origin_keepalive".to_owned(),
        level: "64".to_owned(),
        counter: Counter::OriginConnections,
        value: 1.0,
        other: 1.0,
        because: None,
    }
}

/// Returns a level that changes nothing, for this reason.
pub(in crate::table) fn inert_level(id: &str, why: &str) -> Inert {
    Inert {
        id: id.to_owned(),
        requested: "32768".to_owned(),
        effective: "128".to_owned(),
        why: why.to_owned(),
    }
}

/// Returns an arm that changes nothing but an inert level.
pub(in crate::table) fn inert_arm() -> InertArm {
    let levels = vec![inert_level("backlog", "net.core.somaxconn is 128")];
    InertArm { arm: "keepalive".to_owned(), levels, whole: true }
}

/// Returns an arm that was read as inert and differs.
pub(in crate::table) fn misread_arm() -> MisreadArm {
    MisreadArm {
        arm: "keepalive".to_owned(),
        against: "stock".to_owned(),
        levels: inert_arm().levels,
        load: "closed".to_owned(),
        metric: Metric::Rate,
        ratio: 2.6,
    }
}
