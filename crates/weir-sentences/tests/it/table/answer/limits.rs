//! The answer of studies with a limit for the response time.

use weir_analysis::findings::{
    Holding::{self, DoesNotHold, Holds, Invalid, NotShown},
    LimitFindings, Verdict,
};
use weir_analysis::fixture::arm;
use weir_model::study::{ArmRole, Metric};

use super::Row;
use crate::table::example::{Example, limit_without_figures};

/// Returns the verdict on an arm's limit of 30 ms, with an estimate of this many milliseconds.
fn limit(name: &str, verdict: Holding, value_ms: f64) -> LimitFindings {
    let value_ns = value_ms * 1e6;
    LimitFindings {
        verdict,
        value_ns,
        interval_ns: (value_ns * 0.9, value_ns * 1.1),
        ..limit_without_figures(name)
    }
}

/// Creates an example of one arm with a limit.
fn one_arm(limit: LimitFindings) -> Example {
    let mut example = Example::new(Metric::ResponseP99, vec![arm("nginx", ArmRole::Baseline, 0)]);
    example.load().limits = vec![limit];
    example
}

fn several_arms() -> String {
    let changes = [("keepalive", Verdict::Better, 0.8)];
    Example::of_changes(Metric::ResponseP99, &changes).answer_with(|example| {
        example.load().limits = vec![
            limit("stock", DoesNotHold, 34.0),
            limit("stock-again", DoesNotHold, 34.0),
            limit("keepalive", Holds, 27.2),
        ];
    })
}

fn several_loads() -> String {
    one_arm(limit("nginx", Holds, 2.1)).answer_with(|example| {
        for (load, verdict, value_ms) in [
            ("held-10k", Holds, 3.4),
            ("held-25k", DoesNotHold, 41.0),
            ("held-50k", NotShown, 30.2),
            ("held-100k", Invalid, f64::NAN),
        ] {
            example.add_load(load).limits = vec![limit("nginx", verdict, value_ms)];
        }
    })
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("A limit that holds", one_arm(limit("nginx", Holds, 2.1)).answer()),
        ("A limit that does not hold", one_arm(limit("nginx", DoesNotHold, 41.0)).answer()),
        ("A limit that is not shown to hold", one_arm(limit("nginx", NotShown, 30.2)).answer()),
        ("A limit without figures", one_arm(limit("nginx", Invalid, f64::NAN)).answer()),
        ("A limit for several arms", several_arms()),
        ("A limit for one arm under several loads", several_loads()),
        (
            "The same arm in a run that was cut short",
            one_arm(limit("nginx", Holds, 2.1)).answer_with(|example| {
                example.add_load("held-10k");
                example.findings.complete = false;
            }),
        ),
    ]
}
